// The deployment that a master key belongs to. The encryption context of a share is made from it, so the shares of two
// deployments with the same custody keys cannot be mixed.

/** The root, because a custom network has no other name of its own. 32 bytes, lower case. */
const NETWORK = /^0x[0-9a-f]{64}$/;
/** Names of DynamoDB tables are such, for the table's name is the id when none is stated. */
const DEPLOYMENT_ID = /^[A-Za-z0-9._:/-]{1,1024}$/;

export interface Deployment {
  readonly network: string;
  readonly id: string;
}

export function isNetwork(text: string): boolean {
  return NETWORK.test(text);
}

export function isDeploymentId(text: string): boolean {
  return DEPLOYMENT_ID.test(text);
}

/** @throws Error: a record with such a deployment could be written and never be read */
export function deploymentOf(network: string, id: string): Deployment {
  if (!isNetwork(network)) throw new Error('a network is the 32 bytes of its genesis validators root in hex');
  if (!isDeploymentId(id)) throw new Error('the deployment id has characters other than A-Z a-z 0-9 . _ : / -');
  return { network, id };
}

export function isSameDeployment(one: Deployment, other: Deployment): boolean {
  return one.network === other.network && one.id === other.id;
}
