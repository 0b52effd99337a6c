// What to do about a file that cannot be read or written, by the code of the fault.

import { errorCode } from '../formats/error-code.ts';

const ADVICE: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder: correct the path',
  EACCES: 'this user may not: change the rights of the file or its folder, or run the command as another user',
  EPERM: 'this user may not: change the rights of the file or its folder, or run the command as another user',
  EISDIR: 'this is a folder: name a file',
  EEXIST: 'something of this name is there already: name another file or folder, or move that one away',
  ENOTDIR: 'a part of the path is a file, not a folder: correct the path',
  ENOSPC: 'the disk is full: free some space, or name a file on another disk',
  EROFS: 'the file system is read-only: name a file elsewhere',
};

export function shownErrorCode(error: unknown): string {
  return errorCode(error) ?? 'unknown fault';
}

export function adviceOn(code: string): string | undefined {
  return Object.hasOwn(ADVICE, code) ? ADVICE[code] : undefined;
}

export function fileFault(path: string, verb: 'opened' | 'read' | 'used' | 'written', error: unknown): string {
  const code = shownErrorCode(error);
  const advice = adviceOn(code);
  return `${path} cannot be ${verb} (${code})${advice === undefined ? '' : `: ${advice}`}`;
}
