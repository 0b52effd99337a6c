// How a configuration names a DynamoDB table. A bare name is of the account of the credentials.

export interface TableArn {
  readonly partition: string;
  readonly region: string;
  readonly account: string;
  readonly name: string;
}

/** DynamoDB API Reference, CreateTable. */
const NAME = /^[A-Za-z0-9_.-]{3,255}$/;
const ARN = /^arn:(aws(?:-[a-z]+)*):dynamodb:([a-z]{2,}(?:-[a-z]+)+-\d{1,2}):(\d{12}):table\/([A-Za-z0-9_.-]{3,255})$/;

export function parseTableArn(text: string): TableArn | undefined {
  const [, partition, region, account, name] = ARN.exec(text) ?? [];
  if (partition === undefined || region === undefined || account === undefined || name === undefined) return undefined;
  return { partition, region, account, name };
}

export function isTable(text: string): boolean {
  return NAME.test(text) || parseTableArn(text) !== undefined;
}

export function tableNameIn(table: string): string {
  return parseTableArn(table)?.name ?? table;
}
