/** What is said of keys that are set and not acted on: few lines, however many keys a whole file of a platform sets. */
import type { Fault } from './fault.ts'
import type { ResolvedKey } from './resolve.ts'
import { withoutPlaces } from './setting.ts'

/** So many keys with the same reason have a line each. */
const OWN_LINE = 2
/** So many keys of one section are named; of more, and of several sections, the sections are. */
const NAMED = 6

/** Each at the first line of the file that it is about. */
export function inertOnes(keys: readonly ResolvedKey[]): readonly Fault[] {
  const set = keys.filter(key => key.where !== '' && key.definition.inertReason !== '')
  const alike = Map.groupBy(set, key => key.definition.inertReason)
  return [...alike].flatMap(([reason, listed]) => {
    if (listed.length <= OWN_LINE) return listed.map(({ where, path }) => inertFault(where, path, 'is', reason))
    const first = listed.reduce((one, other) => (lineOf(other) < lineOf(one) ? other : one))
    return [inertFault(first.where, namesOf(listed), 'are', reason)]
  })
}

function lineOf({ settings }: ResolvedKey): number {
  const line = settings.at(-1)?.line ?? 0
  return line === 0 ? Number.POSITIVE_INFINITY : line
}

function namesOf(keys: readonly ResolvedKey[]): string {
  const sections = Map.groupBy(keys, ({ section }) => withoutPlaces(section))
  if (sections.size === 1 && keys.length <= NAMED && keys[0]!.section !== '') {
    return `${keys[0]!.section}: ${keys.map(({ key }) => key).join(', ')}`
  }
  const listed = [...sections].map(([section, within]) => {
    return section === '' ? within.map(({ key }) => key).join(', ') : `[${section}]`
  })
  return `${keys.length} keys of ${listed.join(', ')}`
}

function inertFault(where: string, key: string, verb: string, reason: string): Fault {
  return { where, key, given: '', expected: `${verb} accepted and not acted on`, remedy: reason }
}
