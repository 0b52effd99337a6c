// Why a text of the configuration stands for no secret, and what to do. Repeats nothing of a secret.

/** A reference that leads nowhere (specification/operating.md#startup-failures, 3), or a slip of the hand. */
export class BrokenReference {
  readonly problem: string;
  readonly remedy: string;

  constructor(problem: string, remedy: string) {
    this.problem = problem;
    this.remedy = remedy;
  }
}
