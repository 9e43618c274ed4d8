/** Sets keys in the text of `deployment.toml`, and leaves everything else as it stands. */
import { isDeepStrictEqual } from 'node:util'
import { type DocumentEntry, readDocument } from '../config/document.ts'
import type { TomlChange } from '../tune/proposals.ts'

/** The text has the section in a form that no edit of one line changes; the message is for the operator. */
export class EditError extends Error {
  override readonly name = 'EditError'
}

/**
 * A key that stands in the text is replaced on its line. Another one is added behind the header of its section, or
 * beside dotted keys of the section; a section, at the end. Throws EditError unless the result has every other key as
 * before.
 */
export function setInToml(text: string, change: TomlChange): string {
  const { section, key, value } = change
  const { entries, tables, errors } = readDocument('', text)
  const path = `${section}.${key}`
  const known = entries.find(entry => entry.path === path)
  const header = tables.find(table => table.path === section)
  const dotted = entries.findLast(entry => entry.path.startsWith(`${section}.`) && entry.table !== section)
  const edits = [
    () => (known === undefined ? '' : replaced(text, known.line, change)),
    () => (header === undefined ? '' : inserted(text, header.line, `${quoted(key)} = ${value}`)),
    () => appended(text, `[${section}]`, `${quoted(key)} = ${value}`),
    () => (dotted === undefined ? '' : inserted(text, dotted.line, `${besides(dotted, change)} = ${value}`)),
  ]
  const wanted = [...entries.filter(entry => entry !== known), { path, value }]
  const found = errors.length > 0 ? undefined : edits.map(edit => edit()).find(edited => says(edited, wanted))
  if (found === undefined)
    throw new EditError(`${path} cannot be set in the form in which the file has [${section}]: set it by hand`)
  return found
}

function quoted(key: string): string {
  return key.includes('.') ? `"${key}"` : key
}

/** The name of a key below the header of another one, `passthru_http.reactors` below `[transport]`. */
function besides({ table }: DocumentEntry, { section, key }: TomlChange): string {
  const within = table === '' ? section : section.slice(table.length + 1)
  return `${within}.${quoted(key)}`
}

function replaced(text: string, line: number, { key, value }: TomlChange): string {
  const spelled = key.split('.').map(RegExp.escape).join(`["']?\\s*\\.\\s*["']?`)
  const assigned = new RegExp(`(^|[\\s{,.])(["']?${spelled}["']?\\s*=\\s*)[^,}\\s#]+`)
  const lines = text.split('\n')
  lines[line - 1] = lines[line - 1]!.replace(assigned, (_, before, name) => `${before}${name}${value}`)
  return lines.join('\n')
}

function inserted(text: string, afterLine: number, added: string): string {
  const lines = text.split('\n')
  lines.splice(afterLine, 0, `${added}${lines[afterLine - 1]!.endsWith('\r') ? '\r' : ''}`)
  return lines.join('\n')
}

function appended(text: string, ...added: readonly string[]): string {
  const end = text.includes('\r\n') ? '\r\n' : '\n'
  const before = text.trim() === '' ? [] : [text.trimEnd(), '']
  return [...before, ...added, ''].join(end)
}

function says(text: string, wanted: readonly Pick<DocumentEntry, 'path' | 'value'>[]): boolean {
  const { entries, errors } = readDocument('', text)
  const valuesOf = (list: typeof wanted): unknown => new Map(list.map(({ path, value }) => [path, value]))
  return errors.length === 0 && isDeepStrictEqual(valuesOf(entries), valuesOf(wanted))
}
