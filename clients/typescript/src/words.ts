/** Made from the library by tools/make_typescript.py: do not edit. */

export const REMINDER =
  "Give the answer, then in square brackets the number of the line above that says it.";
export const DIVIDER =
  "\n\n---\n\n";
