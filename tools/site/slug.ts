// The anchor that a forge makes of a heading. It is alone because the site makes its anchors so, and a test judges
// links by it.

export function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}
