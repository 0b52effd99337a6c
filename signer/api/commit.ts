// The commit that the program was built from. A release replaces this module (tools/release/build.ts).

export const COMMIT: string = 'unknown';
