// Names that match a regular expression. A text that is none is searched as it is. Lower case matches both cases. Pure.

export class Names {
  constructor(private readonly names: string[]) {}

  search(text: string): Uint8Array {
    const regex = pattern(text);
    return Uint8Array.from(this.names, (name) => (regex.test(name) ? 1 : 0));
  }
}

export function pattern(text: string): RegExp {
  const flags = text === text.toLowerCase() ? "iu" : "u";
  try {
    return new RegExp(text, flags);
  } catch {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&").replaceAll("\\-", "-"), flags);
  }
}
