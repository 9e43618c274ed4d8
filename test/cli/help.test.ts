/** `help`: prints the pages of the guide. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { UsageError } from '../../src/cli/arguments.ts'
import { help } from '../../src/cli/help.ts'
import { argumentsFor, Transcript } from '../config/temporary-home.ts'

const GUIDE = resolve(import.meta.dirname, '../../conf/guide')
const TOPICS = readdirSync(GUIDE).map(file => file.replace(/\.md$/, ''))

async function run(...rest: string[]): Promise<{ code: number; out: string; err: string }> {
  const [out, err] = [new Transcript(), new Transcript()]
  const code = await help(argumentsFor('/nowhere', { rest }), out, err)
  return { code, out: out.text, err: err.text }
}

test('help TOPIC prints the page of that name', async () => {
  assert.ok(TOPICS.length >= 6)
  for (const topic of TOPICS) {
    const page = readFileSync(join(GUIDE, `${topic}.md`), 'utf8')
    assert.deepEqual(await run(topic), { code: 0, out: page, err: '' })
  }
})

test('every page of the table in the README is a topic, the reference too', async () => {
  const root = resolve(GUIDE, '../..')
  const rows = [...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/^\| \[(\w+)\]\((conf\/.*?\.md)\)/gm)]
  assert.ok(rows.some(([, topic]) => topic === 'reference'))
  for (const [, topic, path] of rows) {
    assert.deepEqual(await run(topic!), { code: 0, out: readFileSync(join(root, path!), 'utf8'), err: '' })
  }
})

test('help lists the commands and the topics with their titles', async () => {
  const { code, out } = await run()
  assert.equal(code, 0)
  assert.match(out, /^ {2}sluice start /m)
  assert.match(out, /^ {2}sluice revoke /m)
  for (const topic of TOPICS) assert.match(out, new RegExp(`^  ${topic} +[A-Z]`, 'm'))
})

test('an unknown topic is a usage error that names the topics', async () => {
  for (const topic of ['api', '../reference', 'apis.md', '\u001b[2J']) {
    await assert.rejects(run(topic), (error: Error) => {
      assert.ok(error instanceof UsageError)
      assert.doesNotMatch(error.message, /\u001b/)
      return error.message.endsWith(`; the topics are ${[...TOPICS, 'reference'].sort().join(', ')}`)
    })
  }
  const { code, out, err } = await run('apis', 'tune')
  assert.deepEqual([code, out], [2, ''])
  assert.match(err, /^Usage:\n {2}sluice help /)
})
