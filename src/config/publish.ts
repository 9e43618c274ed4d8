/** The catalogue as a page to read and as data for tools. Nothing is said here that the catalogue does not say. */
import { type AnySection, allKeys, RULES, SECTIONS } from './catalogue.ts'
import { type Key, keyPath } from './key.ts'
import { defaultOf } from './published.ts'

const PREAMBLE = `# Configuration reference

Derived from \`src/config/catalogue\`; \`npm run reference\` writes it anew.

Keys are set in \`deployment.toml\`, nested or quoted: \`[transport.passthru_http]\` with \`http.socket.timeout = 1\` or
with \`"http.socket.timeout" = 1\` is the same key. Flags may be written as text, lists as one text with commas,
durations as text with a unit (\`"30s"\`). Values may hold \`$ref{section.key}\` (or \`$conf{}\`), \`$env{NAME}\` and
properties: \`\${home}\`, \`\${data}\`, \`\${host}\` and \`\${offset}\`; \`$$\` writes a dollar sign before them. Keys
marked *inert* are accepted and not acted on.
`

export function referencePage(): string {
  return `${PREAMBLE}\n${SECTIONS.map(sectionPart).join('\n')}`
}

function sectionPart(section: AnySection): string {
  const rows = Object.entries(section.keys).map(row)
  const own = RULES.filter(rule =>
    Object.keys(section.keys).some(key => rule.keys[0] === keyPath(section.name, key)),
  ).map(rule => rule.must)
  const rules = [...new Set(own)].map(must => `- ${escaped(must)}\n`)
  const written = section.repeated ? ` Written \`[[${section.name}]]\`, once per row.` : ''
  const table = `| Key | Type | Default | Unit | Range | Meaning |\n|---|---|---|---|---|---|\n${rows.join('')}`
  const list = rules.length === 0 ? '' : `\nRules:\n\n${rules.join('')}`
  return `## ${section.name === '' ? 'Above every table' : section.name}\n\n${section.meaning}${written}\n\n${table}${list}`
}

function row([name, key]: readonly [string, Key<unknown>]): string {
  const meaning = key.inertReason === '' ? key.meaning : `${key.meaning} *Inert: ${key.inertReason}.*`
  const cells = [`\`${name}\``, key.kind, defaultOf(key), key.unit, key.range, meaning]
  return `| ${cells.map(escaped).join(' | ')} |\n`
}

function escaped(cell: string): string {
  return cell.replace(/\|/g, '\\|')
}

export function referenceJson(): string {
  const keys = allKeys().map(({ path, section, key, definition }) => ({
    path,
    section,
    key,
    type: definition.kind,
    default: definition.secret ? '' : definition.fallback,
    required: definition.required,
    unit: definition.unit,
    range: definition.range,
    meaning: definition.meaning,
    inert: definition.inertReason,
  }))
  const rules = RULES.map(({ keys: about, must, severity }) => ({ about, must, severity }))
  return `${JSON.stringify({ keys, rules }, null, 2)}\n`
}
