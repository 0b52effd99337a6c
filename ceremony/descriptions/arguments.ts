// Arguments and choices that several commands of `strongroom ceremony` have.

export const CEREMONY_FILE = {
  name: 'FILE',
  meaning: 'YAML: the ceremony block by itself, or a configuration that has one',
} as const;

export const TRANSCRIPT = { name: 'FILE', meaning: 'The transcript' } as const;

/** What a person is at a ceremony for (specification/custody.md#transcript). */
export const ROLES = ['lead', 'custodian', 'participant', 'operator', 'witness'] as const;
