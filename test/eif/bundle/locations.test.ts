// Files that sources name beside them: a worker and the addon are put beside the bundle, and every other way of naming
// a place stops the build.

import { describe, expect, it } from 'vitest';
import { relocate } from '../../../eif/bundle/locations.ts';

const located = (source: string) => relocate('/project', '/project/signer/slashing/client.ts', source);

describe('what sources name beside them', () => {
  it('a worker becomes a module beside the bundle', () => {
    expect(located("new Worker(new URL('./sqlite-worker.ts', import.meta.url), {});")).toEqual({
      contents: "new Worker(new URL('./sqlite-worker.mjs', import.meta.url), {});",
      workers: ['signer/slashing/sqlite-worker.ts'],
      addon: false,
    });
  });

  it('the addon is found beside the bundle', () => {
    expect(located("new URL('../../build/native/strongroom.node', import.meta.url)")).toEqual({
      contents: "new URL('./strongroom.node', import.meta.url)",
      workers: [],
      addon: true,
    });
  });

  it('a source that names nothing stays as it is', () => {
    const source = '// import.meta.url\nconst load = createRequire(import.meta.url);\n';
    expect(located(source).contents).toBe(source);
  });

  it.each([
    "new URL('./schema.sql', import.meta.url)",
    "new URL('../../../package.json', import.meta.url)",
    'new URL(name, import.meta.url)',
    'import.meta.dirname',
    "import.meta.resolve('x')",
    'import . meta . url',
  ])('%s is refused', (source) => {
    expect(() => located(source)).toThrow('the bundler does not know where a file of signer/slashing/client.ts');
  });
});
