// The ARN of a KMS key, taken apart. An alias can be pointed at another key, and a bare key id says no region.

interface KeyArn {
  readonly partition: string;
  readonly region: string;
  readonly account: string;
  /** A UUID, or `mrk-` and 32 hex digits, which a multi-region key keeps in every region. */
  readonly keyId: string;
}

const KEY_ARN =
  /^arn:(aws(?:-[a-z]+)*):kms:([a-z]{2,}(?:-[a-z]+)+-\d{1,2}):(\d{12}):key\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})$/;

export function parseKeyArn(text: string): KeyArn | undefined {
  const [, partition, region, account, keyId] = KEY_ARN.exec(text) ?? [];
  if (partition === undefined || region === undefined || account === undefined || keyId === undefined) return undefined;
  return { partition, region, account, keyId };
}

/** @throws Error for an ARN that no schema has checked */
export function keyArn(text: string): KeyArn {
  const arn = parseKeyArn(text);
  if (arn === undefined) throw new Error('an ARN that no schema has checked');
  return arn;
}

export function isMultiRegion({ keyId }: KeyArn): boolean {
  return keyId.startsWith('mrk-');
}
