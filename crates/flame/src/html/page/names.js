// Labels that fit: for the page, and for still pictures with a script.

// Shortens a name to at most `columns` characters. Keeps as many trailing path segments as fit; if not even the last
// one fits, truncates it.
function shortenName(name, columns) {
  if (columns < 3) return "";
  if (name.length <= columns) return name;
  let last = name;
  // Names have no maximum length, so only the end of a long name is searched.
  const from = Math.max(0, name.length - Math.max(4 * columns, 400));
  for (let at = name.indexOf("::", from); at >= 0; at = name.indexOf("::", at + 1)) {
    const tail = name.slice(at + 2);
    if (!isBalanced(tail)) continue;
    if (tail.length <= columns && tail.length >= 3) return tail;
    last = tail;
  }
  return `${(last.length >= 3 ? last : name).slice(0, columns - 1)}…`;
}

// Whether brackets balance in `tail`; otherwise it cannot stand alone.
function isBalanced(tail) {
  let open = 0, before = "";
  if (tail.startsWith("operator")) return true;
  for (const c of tail) {
    if ("<([{".includes(c)) open++;
    else if (")]}".includes(c) || (c === ">" && before !== "-" && before !== "=")) open--;
    if (open < 0) return false;
    before = c;
  }
  return true;
}
