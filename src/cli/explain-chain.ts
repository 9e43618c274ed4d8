/** Through which references a value came: `$ref{server.hostname} -> $env{NAME}`, a chain for each that was written. */
import type { ResolvedKey } from '../config/resolve.ts'
import { asWritten, expand, type Reference } from '../config/references.ts'
import { canonical } from '../config/tables.ts'

/** More than these are more than somebody would read. */
const CHAINS_MAX = 16
const LINKS_MAX = 64

/** `keys`: those of the configuration, by path. */
export function chainsOf(key: ResolvedKey, keys: ReadonlyMap<string, ResolvedKey>): readonly string[] {
  return chainsFrom(key, keys, [key.path])
    .slice(0, CHAINS_MAX)
    .map(links => links.join(' -> '))
}

function chainsFrom(
  key: ResolvedKey,
  keys: ReadonlyMap<string, ResolvedKey>,
  passed: readonly string[],
): readonly (readonly string[])[] {
  return referencesIn(writtenOf(key)).flatMap(reference => {
    const link = asWritten(reference)
    const path = reference.kind === 'ref' || reference.kind === 'conf' ? canonical(reference.name) : ''
    const next = keys.get(path)
    if (next === undefined || passed.includes(path) || passed.length > LINKS_MAX) return [[link]]
    const further = chainsFrom(next, keys, [...passed, path])
    return further.length === 0 ? [[link]] : further.slice(0, CHAINS_MAX).map(links => [link, ...links])
  })
}

/** As somebody set it, or as the catalogue has it. */
function writtenOf({ settings, section, definition }: ResolvedKey): unknown {
  const set = settings.at(-1)
  if (set !== undefined) return set.value
  const { follows, fallback } = definition
  return follows === '' ? fallback : `$ref{${follows.startsWith('.') ? section : ''}${follows}}`
}

function referencesIn(written: unknown): readonly Reference[] {
  const found: Reference[] = []
  expand(written, reference => {
    found.push(reference)
    return { value: '', secret: false }
  })
  return found
}
