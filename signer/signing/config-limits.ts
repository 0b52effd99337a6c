// Limits of a network's values, wherever they are written: in a consensus config.yaml or in options.

export const CONFIG_NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._ -]{0,63}$/;
export const SLOT_DURATION_MS_LIMITS = { min: 100, max: 3_600_000 } as const;
