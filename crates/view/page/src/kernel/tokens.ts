// Colours of source text: comments, strings, numbers and keywords of Rust and of languages like C. Pure.
//
// It is no parser: what it does not know is plain text. A line knows from the ones before whether it begins in a comment or a string.

export type Kind = "" | "comment" | "string" | "number" | "keyword";
export interface Token { kind: Kind; text: string }

const words = (text: string) => new Set(text.split(" "));
const RUST = words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type union unsafe use where while yield");
const C = words("alignas alignof auto bool break case catch char class co_await co_return co_yield concept const consteval constexpr continue decltype default delete do double else enum explicit export extern false final float for friend goto if inline int long mutable namespace new noexcept nullptr operator override private protected public register requires restrict return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while " +
  "chan defer fallthrough func go import interface map package range select type var nil comptime errdefer fn pub test orelse and or let guard in is as init");

const ENDINGS: Record<string, Set<string>> = { rs: RUST, lalrpop: RUST };
for (const ending of "c h cc cp cpp cxx c++ hh hp hpp hxx h++ inc inl ipp tcc tpp y l go zig swift d m mm cu cuh cl java kt scala cs v odin".split(" ")) ENDINGS[ending] = C;

// What a line begins in: nothing, a comment of so many levels, a string that ends with a quote, or a raw one with so many hashes.
type Open = { comment: number; quote: string };
const NOTHING: Open = { comment: 0, quote: "" };

export class Tokens {
  private readonly keywords: Set<string> | undefined;
  private readonly begins: Open[] = [NOTHING];

  constructor(private readonly lines: string[], path: string) {
    this.keywords = ENDINGS[path.slice(path.lastIndexOf(".") + 1)];
  }

  line(index: number): Token[] {
    const text = this.lines[index] ?? "";
    if (!this.keywords) return [{ kind: "", text }];
    while (this.begins.length <= index) {
      const at = this.begins.length - 1;
      this.begins.push(this.scan(this.lines[at], this.begins[at], () => {}));
    }
    const tokens: Token[] = [];
    this.scan(text, this.begins[index], (kind, text) => {
      const last = tokens[tokens.length - 1];
      if (last?.kind === kind) last.text += text;
      else tokens.push({ kind, text });
    });
    return tokens;
  }

  // Passes the parts of a line on, and returns what the next one begins in.
  private scan(text: string, open: Open, token: (kind: Kind, text: string) => void): Open {
    const rust = this.keywords === RUST;
    let at = 0, { comment, quote } = open;
    const take = (kind: Kind, end: number) => {
      if (end > at) token(kind, text.slice(at, end));
      at = Math.max(at, end);
    };
    while (at < text.length) {
      if (comment > 0) {
        const close = text.indexOf("*/", at), inner = rust ? text.indexOf("/*", at) : -1;
        if (inner >= 0 && (close < 0 || inner < close)) {
          comment++;
          take("comment", inner + 2);
        } else if (close >= 0) {
          comment--;
          take("comment", close + 2);
        } else take("comment", text.length);
        continue;
      }
      if (quote) {
        let end = at;
        if (quote.length > 1 || quote === "`") end = text.indexOf(quote, at);
        else for (end = at; end < text.length && text[end] !== quote; end++) if (text[end] === "\\") end++;
        const closes = end >= 0 && end < text.length;
        take("string", closes ? end + quote.length : text.length);
        if (closes) quote = "";
        continue;
      }
      const rest = text.slice(at);
      let match: RegExpMatchArray | null;
      if (rest.startsWith("//")) take("comment", text.length);
      else if (rest.startsWith("/*")) {
        comment = 1;
        take("comment", at + 2);
      } else if (rust && (match = rest.match(/^[bc]?r(#*)"/))) {
        // Without hashes it ends with the next quote, whatever is before it.
        quote = `"${match[1]}`;
        take("string", at + match[0].length);
        if (!match[1]) {
          const end = text.indexOf('"', at);
          take("string", end < 0 ? text.length : end + 1);
          if (end >= 0) quote = "";
        }
      } else if (rest[0] === '"' || (!rust && rest[0] === "`")) {
        quote = rest[0];
        take("string", at + 1);
      } else if ((match = rest.match(/^'(?:\\.[^']*|[^'\\])'/))) take("string", at + match[0].length);
      else if ((match = rest.match(/^[A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*/))) take(this.keywords!.has(match[0]) ? "keyword" : "", at + match[0].length);
      else if ((match = rest.match(/^\d(?:[\w]|\.(?=\d)|'(?=\w))*/))) take("number", at + match[0].length);
      else if (!rust && at === text.search(/\S/) && (match = rest.match(/^#\s*\w+/))) take("keyword", at + match[0].length);
      else take("", at + 1);
    }
    // In languages like C a string ends with its line.
    if (!rust && quote === '"' && !text.endsWith("\\")) quote = "";
    return { comment, quote };
  }
}
