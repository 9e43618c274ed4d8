/** Issue 16: the guide has a table of the specification's 43 keys of throttling, with what each one does now. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { allKeys, type CatalogueKey } from '../../src/config/catalogue.ts'
import { conditionText } from '../../src/config/conditions.ts'
import { DOCUMENTED } from './documented-keys.ts'

const GUIDE = readFileSync(new URL('../../conf/guide/throttling.md', import.meta.url), 'utf8')
const HEADING = '## What each key of the specification does'
const SECTION = 'apim.throttling'

const KEYS = allKeys().filter(({ path }) => DOCUMENTED.some(documented => documented.path === path))

/** When a new value acts, and what the key does; or why it does nothing. */
function rowOf({ path, definition }: CatalogueKey): string {
  const { meaning, inertReason, requirements, isLive } = definition
  const conditions = requirements.map(({ condition }) =>
    conditionText(
      condition,
      key => `\`${key.replace(`${SECTION}.`, '').replace('server.server_role', 'server_role')}\``,
    ),
  )
  const acts = inertReason === '' ? (isLive ? 'reload' : 'restart') : 'no'
  const ends = [
    ...(inertReason === '' ? [] : [` Without effect: ${inertReason}.`]),
    ...(inertReason === '' && conditions.length > 0 ? [` Acts while ${conditions.join(', and ')}.`] : []),
  ]
  return `| \`${path.slice(SECTION.length + 1)}\` | ${acts} | ${meaning}${ends.join('')} |`
}

test('the table of the guide has every key of the specification, as the catalogue has it', () => {
  const own = KEYS.filter(({ path }) => path.startsWith(`${SECTION}.`))
  assert.equal(own.length, 43)
  const part = GUIDE.split(`${HEADING}\n`)[1]?.split('\n## ')[0] ?? ''
  const rows = part.split('\n').filter(line => line.startsWith('| `'))
  assert.deepEqual(rows, own.map(rowOf))
})

test('no key of throttling is without effect for want of something that is not built', () => {
  for (const { path, definition } of KEYS) {
    if (path.startsWith(`${SECTION}.`)) assert.doesNotMatch(definition.inertReason, /not built/, path)
  }
})
