// What keeps a first step from being done, with what to do about it. It is alone because both commands throw it, and
// their program tells it.

export class FirstStepFailure extends Error {
  readonly remedies: readonly string[];

  constructor(message: string, remedies: readonly string[] = []) {
    super(message);
    this.name = 'FirstStepFailure';
    this.remedies = remedies;
  }
}
