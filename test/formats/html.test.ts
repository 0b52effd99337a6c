// Text that others chose stays text.

import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { html, htmlPage, htmlTemplate } from '../../common/formats/html.ts';

it('escapes every value, between tags and in attributes, once', () => {
  const hostile = `</p><a href='x' title="y">&amp;`;
  expect(html`<p title="${hostile}">${hostile}</p>`.toString()).toBe(
    '<p title="&lt;/p&gt;&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;amp;">&lt;/p&gt;&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;amp;</p>',
  );
});

it('takes markup that it made itself, numbers and lists', () => {
  const rows = ['<1>', '2'].map((cell) => html`<td>${cell}</td>`);
  expect(html`<tr>${rows}${[3, '&']}</tr>`.toString()).toBe('<tr><td>&lt;1&gt;</td><td>2</td>3&amp;</tr>');
  expect(html`${html`<br>`}${undefined}`.toString()).toBe('<br>');
});

it('a template may spell texts out, and escapes what it spelled; markup stays', () => {
  const loud = htmlTemplate((text) => `<${text}>`);
  expect(loud`<p>${'a'}${loud`<b>${1}</b>`}</p>`.toString()).toBe('<p>&lt;a&gt;<b>&lt;1&gt;</b></p>');
});

it('a page applies its own style, by its digest, and nothing else', () => {
  const style = 'p { margin: 0; }';
  const page = htmlPage(html, { title: '<title>', style, body: html`<p>${'<'}</p>` });
  const digest = createHash('sha256').update(style).digest('base64');
  expect(page).toContain(`content="default-src 'none'; style-src 'sha256-${digest}'"`);
  expect(page).toContain(`<style>${style}</style>`);
  expect(page).toContain('<title>&lt;title&gt;</title>');
  expect(page).toContain('<body>\n<p>&lt;</p>\n</body>');
  expect(() => htmlPage(html, { title: '', style: '</style><script>', body: html`` })).toThrow();
});
