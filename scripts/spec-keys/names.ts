/** Reads names of sections and keys from their notations in the specification. */
import { SpecError, splitOutside } from './markdown.ts'

export interface SectionName {
  /** '' for keys above every table of a file. */
  readonly name: string
  /** `[[name]]` */
  readonly repeated: boolean
}

interface NamedKey {
  readonly name: string
  /** The key of which this is an alias; '' for a key itself. */
  readonly aliasOf: string
}

const NAME = /^[A-Za-z]\w*(?:[.-]\w+)*(?:\.<name>)?$/
const SECTION = /^(?:\[\[([\w.]+)\]\]|\[([\w.]*(?:\.<name>)?)\])$/

/** Undefined for a token that is no section in brackets. */
export function sectionOf(token: string): SectionName | undefined {
  const [, repeated, single] = SECTION.exec(token) ?? []
  if (repeated !== undefined) return { name: repeated, repeated: true }
  return single === undefined ? undefined : { name: single, repeated: false }
}

/** Names in one token: `a.b`, `a.b/c` for `a.b` and `a.c`, `.c` after `a.b` for `a.c`. */
export function namesOfToken(token: string, before: string, line: number): readonly string[] {
  const [first, ...others] = token.split('/')
  const whole = first!.startsWith('.') ? groupOf(before) + first!.slice(1) : first!
  const names = [whole, ...others.map(other => groupOf(whole) + other)]
  for (const name of names) if (!NAME.test(name)) throw new SpecError(line, `"${token}" is no name of a key`)
  return names
}

/** `a.b.` of `a.b.c`. */
function groupOf(name: string): string {
  return name.slice(0, name.lastIndexOf('.') + 1)
}

/** Names in a cell, with commas, slashes, "and", `a.* (b, c)` and "a (also listed as b)". */
export function namesOfCell(cell: string, membersBefore: readonly string[], line: number): readonly NamedKey[] {
  const [, plain, alias] = /^(\S+) \(also listed as (\S+)\)$/.exec(cell) ?? []
  if (plain !== undefined && alias !== undefined) {
    return [...named(plain, '', line), ...named(alias, '', line).map(({ name }) => ({ name, aliasOf: plain }))]
  }
  const members = membersOf(cell) ?? membersBefore
  let dotted = ''
  return splitOutside(cell, /^(?:, | \/ | and )/).flatMap(text => {
    const name = text.replace(/\s*\(.*\)$/, '')
    if (name.endsWith('.*')) {
      if (members.length === 0) throw new SpecError(line, `the members of ${name} are not listed`)
      return members.flatMap(member => named(name.slice(0, -1) + member, '', line))
    }
    // A name without dots after a dotted one belongs to the same group.
    if (name.includes('.')) dotted = name
    return named(name, name.includes('.') ? '' : groupOf(dotted), line)
  })
}

/** Names for which `*` stands, where the cell lists them. */
export function membersOf(cell: string): readonly string[] | undefined {
  const listed = /\.\* \(([^)]*)\)/.exec(cell)?.[1]
  return listed?.split(',').map(member => member.trim())
}

function named(text: string, group: string, line: number): readonly NamedKey[] {
  return namesOfToken(group + text, '', line).map(name => ({ name, aliasOf: '' }))
}
