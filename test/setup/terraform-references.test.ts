// What the modules of deploy/terraform say of variables, references and one another, looked at as
// `terraform validate` would, without the internet.

import { describe, expect, it } from 'vitest';
import { TABLES } from '../../setup/table-permissions.ts';
import type { Module } from '../support/terraform-module.ts';
import { blockOf, example, expression, key, signer } from './terraform-modules.ts';
import { ENCLAVE_VALUES, KEY_VALUES, template } from './terraform-templates.ts';

describe('as `terraform validate` would', () => {
  it('regular expressions are those of RE2, which repeats at most 1000 times and looks neither ahead nor back', () => {
    const expressions = ['custody-key/variables.tf', 'signer/variables.tf'].flatMap((path) =>
      [...template(path).matchAll(/\bregex\("((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text),
    );
    expect(expressions.length).toBeGreaterThan(5);
    const strange = expressions.filter(
      (text) =>
        /\(\?[=!<]|\\[1-9]/.test(text) ||
        [...text.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].some(([, least, most]) => Number(most || least) > 1000),
    );
    expect(strange).toEqual([]);
  });

  it('what is made, and how often, is known before anything is made', () => {
    // Whether an object is null is known at once; whether a string of a resource is, when the resource is there.
    const compared = template('custody-key/main.tf').matchAll(/var\.(\w+) [!=]= null/g);
    const types = [...compared].map(([, name = '']) => [name, key.variables[name]?.[0]?.['type']]);
    expect(types).toEqual([['replica_of', expression('object({ arn = string })')]]);
  });

  it('everything that is referred to is there, and everything that is declared is used', () => {
    for (const module of [key, signer, example]) {
      const referred = (pattern: RegExp) =>
        new Set(module.expressions.flatMap((text) => [...text.matchAll(pattern)].map(([, name = '']) => name)));
      const variables = referred(/\bvar\.(\w+)/g);
      expect([...variables].sort()).toEqual(Object.keys(module.variables).sort());
      expect([...referred(/\blocal\.(\w+)/g)].sort()).toEqual(Object.keys(module.locals).sort());
      const resources = referred(/(?<![\w.])(aws_\w+\.\w+)/g);
      expect([...resources].filter((name) => !module.resources.has(name))).toEqual([]);
      const data = referred(/\b(data\.\w+\.\w+)/g);
      expect([...data].sort()).toEqual([...module.data.keys()].sort());
    }
  });

  it('modules are given what they need, and give what is asked of them', () => {
    const known: Readonly<Record<string, Module>> = { '../custody-key': key, '../signer': signer };
    const calls = Object.entries(example.modules);
    expect(calls).toHaveLength(4);
    for (const [name, [call = {}]] of calls) {
      const module = known[String(call['source'])];
      if (module === undefined) throw new Error(`${name} has no source here`);
      const given = Object.keys(call).filter((member) => member !== 'source' && member !== 'providers');
      expect(given.filter((member) => module.variables[member] === undefined)).toEqual([]);
      const needed = Object.entries(module.variables).filter(
        ([, [body]]) => body !== undefined && !('default' in body),
      );
      expect(needed.map(([member]) => member).filter((member) => !given.includes(member))).toEqual([]);
      const asked = example.expressions.flatMap((text) => [
        ...text.matchAll(new RegExp(`\\bmodule\\.${name}\\.(\\w+)`, 'g')),
      ]);
      expect(asked.map(([, output = '']) => output).filter((output) => module.outputs[output] === undefined)).toEqual(
        [],
      );
    }
  });

  it('templates are there, and are given every value that they ask for', () => {
    const named = signer.expressions.flatMap((text) => [...text.matchAll(/\$\{path\.module\}\/([\w./-]+\.tftpl)/g)]);
    expect(named.map(([, path = '']) => template(`signer/${path}`).length > 0)).not.toContain(false);
    expect(named.length).toBeGreaterThan(3);
    const policy = String(key.locals['policy']);
    for (const name of Object.keys({ ...KEY_VALUES, images: 0, phase: 0, sealers: 0 })) {
      expect(policy).toMatch(new RegExp(`\\b${name}\\s+= `));
    }
    const granted = JSON.stringify(signer.locals['granted']);
    for (const name of ['key_arns', ...TABLES.map((kind) => `${kind}_table_arn`)]) expect(granted).toContain(name);
    const enclave = String(blockOf(signer.outputs['enclave_yaml'])['value']);
    for (const name of Object.keys(ENCLAVE_VALUES)) expect(enclave).toMatch(new RegExp(`\\b${name}\\s+= `));
  });
});
