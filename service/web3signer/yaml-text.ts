// A configuration as YAML to go on with. Texts stand in double quotes, which JSON and YAML 1.2 read alike.

export interface YamlSection {
  [name: string]: unknown;
}

export function yamlText(section: YamlSection, indent = ''): string {
  return Object.entries(section)
    .map(([name, value]) =>
      isSection(value)
        ? `${indent}${name}:\n${yamlText(value, `${indent}  `)}`
        : `${indent}${name}: ${JSON.stringify(value)}\n`,
    )
    .join('');
}

function isSection(value: unknown): value is YamlSection {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
}
