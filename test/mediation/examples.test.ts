/** Sequences in the manner of public examples are accepted; test/mediation/examples/table.ts says what they do. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parseFile } from './test-sequences.ts'
import { EXAMPLES } from './examples/table.ts'

const FOLDER = join(import.meta.dirname, 'examples')
const FILES = readdirSync(FOLDER).filter(name => name.endsWith('.xml'))

describe('an example is accepted:', () => {
  for (const file of FILES) {
    test(file, async () => {
      const { errors } = await parseFile(readFileSync(join(FOLDER, file), 'utf8'), file.slice(0, -'.xml'.length))
      assert.deepEqual(errors, [])
    })
  }
})

test('the table says of at least thirty examples what they do', () => {
  assert.ok(EXAMPLES.length >= 30)
  for (const { name } of EXAMPLES) {
    assert.ok(
      ['', '-out', '-fault'].some(end => existsSync(join(FOLDER, `${name}${end}.xml`))),
      name,
    )
  }
  const named = new Set(EXAMPLES.map(({ name }) => name))
  const without = FILES.filter(file => !named.has(file.replace(/(?:-out|-fault)?\.xml$/, '')))
  assert.deepEqual(without, [])
})
