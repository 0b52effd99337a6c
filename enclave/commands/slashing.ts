export async function runSlashingCommand(_a: readonly string[], _w: unknown): Promise<number> { return 1; }
