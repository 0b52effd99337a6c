// The one refusal of an interchange file.

/** Why a file is refused, and where: `data[17].signed_blocks[3].slot`. The text holds nothing of the file's content. */
export class InterchangeError extends Error {
  readonly place: string;

  constructor(place: string, problem: string) {
    super(place === '' ? problem : `${place}: ${problem}`);
    this.name = 'InterchangeError';
    this.place = place;
  }
}
