// A PostgreSQL of the model, real servers: one that signers reach by a name, and a standby that stopped receiving. A
// failover leads the name to the standby, and what was committed since is lost; a copy of the files can be put back.
// While an administrator is at it the name leads nowhere.

import { type PostgresServer, type PostgresStandby, startPostgres } from '../postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../postgres-proxy.ts';

/** The port of nobody on this machine. */
const NOWHERE = 1;
/** Their log is longer than what a server may lose in a crash (signer/slashing/postgres/connection/server.ts). */
const OTHER_WORK = 'CREATE TABLE other_work AS SELECT generate_series(1, 20000); DROP TABLE other_work';

export class FleetCluster {
  #server: PostgresServer;
  readonly #proxy: PostgresProxy;
  #standby: PostgresStandby | undefined;
  #databases = 0;
  hasCopy = false;
  /** The database of the world that lives now. */
  database = '';
  /** How commits were lost last. */
  incident: 'failover' | 'restored' | undefined;

  private constructor(server: PostgresServer, proxy: PostgresProxy) {
    this.#server = server;
    this.#proxy = proxy;
  }

  static async start(): Promise<FleetCluster> {
    const server = await startPostgres({ settings: { wal_level: 'replica', synchronous_standby_names: '' } });
    return new FleetCluster(server, await startPostgresProxy(server.port));
  }

  get hasStandby(): boolean {
    return this.#standby !== undefined;
  }

  /** By the name that signers use. */
  get url(): string {
    return this.ownUrl.replace(`:${this.#server.port}/`, `:${this.#proxy.port}/`);
  }

  /** As an administrator reaches it, also while the name leads nowhere. */
  get ownUrl(): string {
    return this.#server.url(this.database);
  }

  /** For a new world: nothing of the one before is left. */
  async begin(): Promise<void> {
    await this.#standby?.close();
    this.#standby = undefined;
    this.hasCopy = false;
    this.incident = undefined;
    this.#databases += 1;
    this.database = `fleet_${this.#databases}`;
    await this.#server.query('postgres', `CREATE DATABASE ${this.database}`);
  }

  /** A standby that has everything of now and receives nothing more. */
  async leaveBehind(): Promise<void> {
    const standby = await this.#server.startStandby();
    await standby.catchUp();
    await standby.stopReceiving();
    this.#standby = standby;
  }

  /** The old primary is fenced first. `prepare` comes before any signer. */
  async failOver(prepare: () => Promise<void>): Promise<void> {
    const standby = this.#standby;
    if (standby === undefined) throw new Error('there is no standby');
    await this.#aside(async () => {
      await this.#server.close();
      await standby.promote();
      this.#server = standby;
      this.#standby = undefined;
      this.hasCopy = false;
      this.incident = 'failover';
      await prepare();
    });
  }

  saveFiles(): Promise<void> {
    return this.#aside(async () => {
      await this.#server.stop('fast');
      this.#server.saveFiles();
      await this.#server.start();
      this.hasCopy = true;
    });
  }

  restoreFiles(prepare: () => Promise<void>): Promise<void> {
    return this.#aside(async () => {
      await this.#server.stop('fast');
      this.#server.restoreFiles();
      await this.#server.start();
      this.incident = 'restored';
      await prepare();
    });
  }

  async doOtherWork(): Promise<void> {
    await this.#server.query(this.database, OTHER_WORK);
  }

  async close(): Promise<void> {
    await this.#proxy.close();
    await this.#standby?.close();
    await this.#server.close();
  }

  async #aside(work: () => Promise<void>): Promise<void> {
    this.#proxy.switchTo(NOWHERE, 'cut');
    try {
      await work();
    } finally {
      this.#proxy.switchTo(this.#server.port, 'cut');
    }
  }
}
