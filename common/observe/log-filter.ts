// What is logged: levels, by module. Apart from the logger, because the configuration and its help need no logger.

/** The default level does not touch `audit` and `slashing_trace` (what the store is asked and answers, at debug). */
export const LOG_MODULES = [
  'audit',
  'server',
  'http',
  'auth',
  'keys',
  'signing',
  'slashing',
  'slashing_trace',
  'tls',
  'chamber',
  'tee',
] as const;
export type LogModule = (typeof LOG_MODULES)[number];

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'off'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

interface LogFilter {
  readonly level: LogLevel;
  readonly modules: ReadonlyMap<LogModule, LogLevel>;
}

/** Undefined when the filter is not well formed or names a module that does not exist. */
export function parseLogFilter(filter: string): LogFilter | undefined {
  let level: LogLevel = 'info';
  const modules = new Map<LogModule, LogLevel>();
  for (const part of filter.split(',')) {
    const [left = '', right, ...rest] = part.trim().split('=');
    const named = right ?? left;
    const found = LOG_LEVELS.find((candidate) => candidate === named.toLowerCase());
    if (found === undefined || rest.length > 0 || left === '') return undefined;
    const module = LOG_MODULES.find((candidate) => candidate === left);
    if (right === undefined) level = found;
    else if (module === undefined) return undefined;
    else modules.set(module, found);
  }
  return { level, modules };
}

const WITHOUT_DEFAULT_LEVEL: ReadonlySet<LogModule> = new Set(['audit', 'slashing_trace']);

/** Who lowers the log does not mean to lose who signed what, nor who raises it to get two lines for each check. */
export function levelOf(module: LogModule, { level, modules }: LogFilter): LogLevel {
  return modules.get(module) ?? (WITHOUT_DEFAULT_LEVEL.has(module) && level !== 'off' ? 'info' : level);
}
