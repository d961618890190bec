/**
 * What the contract names and nobody has written yet: a name, or `Class.member`. It only ever gets shorter; contract.test.ts
 * fails when something in it has been built.
 */
export const notBuilt: readonly string[] = [
  // Several ranks.
  'CreateOptions.logs',
];

/** The same for parts of types: text of contract.d.ts that is left out. */
export const notBuiltParts: readonly string[] = [
  "    format?: 'original' | 'classic' /* (2) */;\n",
  '    bigEndian?: boolean /* (2) classic only */;\n',
];
