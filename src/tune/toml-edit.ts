/** Sets keys in the text of `deployment.toml`, and leaves everything else as it stands. */

const HEADER = /^\s*\[([^[\]]+)\]\s*(?:#.*)?$/
const ANY_HEADER = /^\s*\[/

export interface TomlChange {
  /** `transport.passthru_http` */
  readonly section: string
  /** As in `section.key`; a key with dots is quoted in the file. */
  readonly key: string
  readonly value: number
}

/** A key that stands in its section is replaced on its line, else added behind the header; a section, at the end. */
export function setInToml(text: string, { section, key, value }: TomlChange): string {
  const lines = text.split('\n')
  const start = lines.findIndex(line => HEADER.exec(line)?.[1]?.trim() === section)
  const entry = `${key.includes('.') ? `"${key}"` : key} = ${value}`
  if (start === -1) return `${text.trimEnd()}${text.trim() === '' ? '' : '\n\n'}[${section}]\n${entry}\n`
  const next = lines.findIndex((line, at) => at > start && ANY_HEADER.test(line))
  const end = next === -1 ? lines.length : next
  const known = new RegExp(`^(\\s*)["']?${RegExp.escape(key)}["']?\\s*=\\s*[^#]*?(\\s*#.*)?$`)
  for (let at = start + 1; at < end; at++) {
    const match = known.exec(lines[at]!)
    if (match === null) continue
    lines[at] = `${match[1]}${entry}${match[2] ?? ''}`
    return lines.join('\n')
  }
  lines.splice(start + 1, 0, entry)
  return lines.join('\n')
}
