// The command tree's root: which program a command belongs to, and the help of all of them. Each program reads its own
// arguments and decides its exit code.

import { asksForHelp } from '../common/command-line/arguments.ts';
import { followWords, toldFlags } from '../common/command-line/command.ts';
import { EXIT } from '../common/command-line/exit-codes.ts';
import { sayFailure, sayNoCommand, seeHelp } from '../common/command-line/failure.ts';
import { renderHelp } from '../common/command-line/help.ts';
import { quoted } from '../common/command-line/printable.ts';
import { suggest } from '../common/command-line/violations.ts';
import { columnsOf } from '../common/command-line/wrap.ts';
import { described } from './described.ts';
import { OVERVIEW, PROGRAMS } from './programs.ts';

/** The first word tells the entry point of a container that was Web3Signer's: no command of our own begins so. */
const OF_WEB3SIGNER = /^(?:-.+|eth1|eth2|filecoin)$/;
const MODES_OF_WEB3SIGNER = ['eth1', 'eth2', 'filecoin'];
const VERSION_OPTIONS = ['--version', '-v'];
const OWN_OPTIONS = ['--help', '-h', ...VERSION_OPTIONS];
/** Runs with no arguments at all: its configuration may be in the environment. */
const RUNS_ALONE = ['try', 'init', 'migrate', 'server', 'web3signer', 'parent-proxy', 'completion'];
/** These programs go on when the reader of their log has ended. */
const SERVES = ['server', 'web3signer', 'parent-proxy'];
/** What a library leaves open, such as a connection to a neighbour that does not answer, keeps a command so long. */
const LEFT_OPEN_MS = 2_000;

const [name, ...rest] = commandLine(helpLast(process.argv.slice(2)));

/** `help operator seal` is `operator seal --help`. */
function helpLast([first, ...words]: readonly string[]): readonly string[] {
  if (first === undefined) return [];
  const [next] = words;
  const isAsked = first === 'help' && next !== undefined && Object.hasOwn(PROGRAMS, next);
  return isAsked ? [...words, '--help'] : [first, ...words];
}

function commandLine(argv: readonly string[]): readonly string[] {
  const [first = ''] = argv;
  return OF_WEB3SIGNER.test(first) && !OWN_OPTIONS.includes(first) ? ['web3signer', ...argv] : argv;
}

process.stdout.on('error', endUnread);

/** A reader such as `head` goes when it has seen enough: nothing is said of that. */
function endUnread({ code }: NodeJS.ErrnoException): void {
  if (code !== 'EPIPE') sayFailure(process, 'strongroom', `what it prints cannot be written (${code ?? 'unknown'})`);
  process.exit(EXIT.failed);
}

/** The first option, when neither Web3Signer nor we have it and no word says Web3Signer: the user mistyped ours. */
async function strayOption(): Promise<string | undefined> {
  const [first] = process.argv.slice(2);
  if (name !== 'web3signer' || first === undefined || first === name) return undefined;
  if (rest.some((word) => MODES_OF_WEB3SIGNER.includes(word))) return undefined;
  const written = first.replace(/=.*/s, '');
  const { description } = followWords(await described(), ['web3signer']);
  const flags = Object.entries(toldFlags(description));
  const known = flags.flatMap(([flag, { short }]) => [`--${flag}`, ...(short === undefined ? [] : [`-${short}`])]);
  return known.includes(written) ? undefined : written;
}

const stray = await strayOption();
const program = name !== undefined && Object.hasOwn(PROGRAMS, name) ? PROGRAMS[name] : undefined;
if (name !== undefined && VERSION_OPTIONS.includes(name)) {
  process.stdout.write((await import('./version.ts')).versionLine());
} else if (name === undefined) {
  process.stderr.write(renderHelp([], OVERVIEW, columnsOf(process.stderr)));
  process.exitCode = EXIT.failed;
} else if (name === '--help' || name === '-h' || name === 'help') {
  process.stdout.write(renderHelp([], OVERVIEW, columnsOf(process.stdout)));
} else if (stray !== undefined) {
  const advice = suggest(stray, ['--help', '--version'], 'options of Web3Signer go before and after the word eth2');
  sayFailure(process, 'strongroom', `there is no option ${quoted(stray)}; ${advice}`, [seeHelp('strongroom')]);
  process.exitCode = EXIT.failed;
} else if (program === undefined) {
  sayNoCommand(process, 'strongroom', name, Object.keys(PROGRAMS));
  process.exitCode = EXIT.failed;
} else {
  const help = await wantedHelp(name);
  if (help === undefined) {
    if (SERVES.includes(name)) process.stdout.off('error', endUnread);
    await program.run(rest);
    // A command has said how it ended; a program that serves has not, and goes on.
    if (process.exitCode !== undefined) setTimeout(() => process.exit(), LEFT_OPEN_MS).unref();
  } else help();
}

/** Prints the help of the command that the words lead to, when it is asked for, or when the words end at a group. */
async function wantedHelp(word: string): Promise<(() => void) | undefined> {
  const asks = asksForHelp(rest) || rest.includes('help');
  const mayEnd = !RUNS_ALONE.includes(word) && rest.every((one) => !one.startsWith('-'));
  if (!asks && !mayEnd) return undefined;
  const { path, description, rest: after } = followWords(await described(), [word, ...rest]);
  const isGroup = description.commands !== undefined;
  const [next] = after;
  const ends = mayEnd && isGroup && next === undefined;
  // A word that is no command of the group is the program's to refuse.
  const isHelp = asksForHelp(rest) ? !isGroup || next?.startsWith('-') === true : isGroup && next === 'help';
  if (!ends && !isHelp) return undefined;
  return () => {
    const stream = ends ? process.stderr : process.stdout;
    stream.write(renderHelp(path, description, columnsOf(stream)));
    if (ends) process.exitCode = EXIT.failed;
  };
}
