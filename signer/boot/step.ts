// A step of the boot: it has a result, or ends the start with a message that names the step.

export class StartupError extends Error {
  constructor(stepName: string, cause: unknown) {
    super(`${stepName}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'StartupError';
  }
}

export async function step<T>(name: string, run: () => Promise<T> | T): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new StartupError(name, error);
  }
}
