// Which IAM actions a call of DynamoDB asks for, and on which tables: a transaction is asked for what stands in it, a
// statement for what it does (DynamoDB Developer Guide, Using IAM with DynamoDB transactions, IAM security policies
// with PartiQL). Nothing is left out: an operation of an unknown form is an error.

export interface TableCallAction {
  /** `dynamodb:PutItem` */
  readonly action: string;
  /** As the call names it. */
  readonly table: string;
}

type Json = Readonly<Record<string, unknown>>;

const IN_TRANSACTIONS: Readonly<Record<string, string>> = {
  Get: 'GetItem',
  Put: 'PutItem',
  Update: 'UpdateItem',
  Delete: 'DeleteItem',
  ConditionCheck: 'ConditionCheckItem',
};

const IN_STATEMENTS: Readonly<Record<string, string>> = {
  SELECT: 'PartiQLSelect',
  INSERT: 'PartiQLInsert',
  UPDATE: 'PartiQLUpdate',
  DELETE: 'PartiQLDelete',
};

export function tableActionsOf(operation: string, body: string): readonly TableCallAction[] {
  const request = JSON.parse(body) as Json;
  const one = (name: string | undefined, table: unknown): TableCallAction => {
    if (name === undefined || typeof table !== 'string') throw new Error(`a call of an unknown form: ${operation}`);
    return { action: `dynamodb:${name}`, table };
  };
  switch (operation) {
    case 'TransactGetItems':
    case 'TransactWriteItems':
      return (request['TransactItems'] as readonly Readonly<Record<string, Json>>[]).flatMap((item) =>
        Object.entries(item).map(([kind, of]) => one(IN_TRANSACTIONS[kind], of['TableName'])),
      );
    case 'BatchGetItem':
    case 'BatchWriteItem':
      return Object.keys(request['RequestItems'] as Json).map((table) => one(operation, table));
    case 'BatchExecuteStatement':
      return (request['Statements'] as readonly { readonly Statement: string }[]).map(({ Statement }) => {
        const [, verb = '', table] = /^(\w+) "([^"]+)"/.exec(Statement) ?? [];
        return one(IN_STATEMENTS[verb], table);
      });
    default:
      return [one(operation, request['TableName'])];
  }
}
