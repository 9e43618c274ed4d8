/** From what the specification writes for sections and keys to their names. */
import { SpecFault, splitOutside } from './markdown.ts'

export interface SectionName {
  /** '' for what stands above every table of a file. */
  readonly name: string
  /** `[[name]]` */
  readonly repeated: boolean
}

interface NamedKey {
  readonly name: string
  /** The key it is another spelling of; '' for a key itself. */
  readonly aliasOf: string
}

const NAME = /^[A-Za-z]\w*(?:[.-]\w+)*(?:\.<name>)?$/
const SECTION = /^(?:\[\[([\w.]+)\]\]|\[([\w.]*(?:\.<name>)?)\])$/

/** Undefined for what is no section in brackets. */
export function sectionOf(token: string): SectionName | undefined {
  const [, repeated, single] = SECTION.exec(token) ?? []
  if (repeated !== undefined) return { name: repeated, repeated: true }
  return single === undefined ? undefined : { name: single, repeated: false }
}

/** Names of one token: `a.b`, `a.b/c` for `a.b` and `a.c`, `.c` behind `a.b` for `a.c`. */
export function namesOfToken(token: string, before: string, line: number): readonly string[] {
  const [first, ...others] = token.split('/')
  const whole = first!.startsWith('.') ? groupOf(before) + first!.slice(1) : first!
  const names = [whole, ...others.map(other => groupOf(whole) + other)]
  for (const name of names) if (!NAME.test(name)) throw new SpecFault(line, `"${token}" is no name of a key`)
  return names
}

/** `a.b.` of `a.b.c`. */
function groupOf(name: string): string {
  return name.slice(0, name.lastIndexOf('.') + 1)
}

/** A cell of names: commas, slashes, "and", `a.* (b, c)`, "a (also listed as b)". */
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
      if (members.length === 0) throw new SpecFault(line, `the members of ${name} are not listed`)
      return members.flatMap(member => named(name.slice(0, -1) + member, '', line))
    }
    // An undotted name behind a dotted one is of the same group.
    if (name.includes('.')) dotted = name
    return named(name, name.includes('.') ? '' : groupOf(dotted), line)
  })
}

/** What the stars of a cell stand for, where it says so. */
export function membersOf(cell: string): readonly string[] | undefined {
  const listed = /\.\* \(([^)]*)\)/.exec(cell)?.[1]
  return listed?.split(',').map(member => member.trim())
}

function named(text: string, group: string, line: number): readonly NamedKey[] {
  return namesOfToken(group + text, '', line).map(name => ({ name, aliasOf: '' }))
}
