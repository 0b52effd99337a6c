// Arguments that several commands of `strongroom ceremony` have.

export const CEREMONY_FILE = {
  name: 'FILE',
  meaning: 'YAML: the ceremony block by itself, or a configuration that has one',
} as const;

export const TRANSCRIPT = { name: 'FILE', meaning: 'The transcript' } as const;
