/** Made from the library by tools/make_typescript.py: do not edit. */

export const REMINDER =
  "Give the answer, then in square brackets the number of the line above that says it.";
export const NOT_SAID =
  "Nothing in memory answers this. If it asks what was said, done or planned before, answer: not mentioned.";
export const NOT_SAID_UNLESS =
  "Nothing in memory answers this, unless a line above does. If none does and it asks what was said, done or planned before, answer: not mentioned.";
export const UNLESS_LINES: readonly string[] = [
  "## Nothing in memory answers this, unless a line above does.",
  "## Nothing in memory clearly answers this, unless a line above does; the nearest it holds:",
];
