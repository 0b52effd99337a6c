import { describe, expect, it } from 'vitest';
import { answerFormat, signatureAnswer } from '../../signer/http/replies.ts';

describe('the form of the answer', () => {
  it.each([
    ['application/json', 'Lighthouse, Lodestar, Nimbus, SSV'],
    ['*/*', 'Grandine'],
    ['application/json, text/plain, */*', 'many a library'],
    ['text/plain, application/json;q=0.9', 'one that takes both'],
    ['Application/JSON', 'media types have no case'],
  ])('is JSON for Accept: %s (%s)', (accept, _sender) => {
    expect(answerFormat(accept)).toBe('json');
  });

  it.each([
    [undefined, 'Teku and Prysm send none'],
    ['text/plain', 'Vero'],
    ['', 'an empty header'],
    ['text/*', 'no JSON in it'],
    ['application/xml', 'no form of ours'],
  ])('is bare hex for Accept: %s (%s)', (accept, _sender) => {
    expect(answerFormat(accept)).toBe('text');
  });
});

describe('the answer', () => {
  const signature = Uint8Array.from({ length: 96 }, (_, index) => index + 0x9f);
  const hex = `0x${Buffer.from(signature).toString('hex')}`;

  it('in JSON has one member, in lower case', () => {
    expect(signatureAnswer(signature, 'json')).toEqual({
      contentType: 'application/json',
      body: `{"signature":"${hex}"}`,
    });
  });

  it('in text is the hex and nothing else, without a newline', () => {
    expect(signatureAnswer(signature, 'text')).toEqual({ contentType: 'text/plain; charset=utf-8', body: hex });
  });
});
