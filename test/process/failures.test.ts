/** `failures` on a running gateway: the list, one timeline, the stream, and the HTTP archive. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { Ajv } from 'ajv'
import type { FailuresReport } from '../../src/primary/failure-service.ts'
import { begin, dial, home, leave, sluice, start } from '../harness/operator.ts'
import { eventually } from '../harness/peers.ts'
import { freePort, LAUNCHER } from '../harness/program.ts'
import { putApi } from '../harness/reloading.ts'
import { takeResponse } from '../harness/responses.ts'

after(leave)

const at = home()
putApi(at, 'Dead', 'dead', `http://127.0.0.1:${await freePort()}`)
const gateway = await start(at)

async function get(target: string, status: number): Promise<void> {
  const client = await dial(gateway)
  client.send(`GET ${target} HTTP/1.1\r\nHost: gateway.example\r\n\r\n`)
  assert.equal((await takeResponse(client)).status, status)
  client.destroy()
}

await get('/dead/x?access_token=SECRET&page=2', 502)
await get('/t/fine', 200)
await get('/nothing/"<\\^`{|}>%zz?a=%&"=\'#', 400)
await get('/nothing/y', 404)

async function listed(...words: string[]): Promise<FailuresReport> {
  const { code, out, err } = await sluice(at, 'failures', '--json', ...words)
  assert.deepEqual([code, err], [0, ''])
  return JSON.parse(out)
}

test('failures: lists what failed, newest first, with filters, and without secrets', async () => {
  const { rows, omitted, skipped, silent } = await listed()
  assert.deepEqual(
    rows.map(({ status, code, side }) => [status, code, side]),
    [
      [404, 404, 'gateway'],
      [400, 400, 'gateway'],
      [502, 101503, 'target'],
    ],
  )
  assert.deepEqual([omitted, skipped, silent], [0, 0, []])
  assert.doesNotMatch(JSON.stringify(rows), /SECRET/)
  for (const words of [
    ['--side', 'target'],
    ['--status', '5xx'],
    ['--code', '101503'],
    ['--api', 'Dead'],
  ]) {
    assert.deepEqual((await listed(...words)).rows, [rows[2]], words.join(' '))
  }
  assert.equal((await listed('--limit', '1')).omitted, 2)
  assert.deepEqual((await listed('--since', new Date(Date.now() + 60_000).toISOString())).rows, [])
  const { out } = await sluice(at, 'failures')
  assert.match(out, /backend {2}502 {5}101503 .* GET \/dead\/x\?access_token=\*\*\*&page=2 \(Dead\) .*ECONNREFUSED/)
})

test('failures ID: shows the states of both sides on a time axis, and the cause in words', async () => {
  const [row] = (await listed('--side', 'target')).rows
  for (const id of [row!.id, row!.correlationId]) {
    const { code, out } = await sluice(at, 'failures', id)
    assert.equal(code, 0)
    assert.match(out, /^GET \/dead\/x\?access_token=\*\*\*&page=2 {2}502 Bad Gateway\nbackend: .*ECONNREFUSED\n/)
    assert.match(out, /\n +\d+ µs +backend +CONNECTING .*✗ *█+\n/)
    assert.match(out, /\n +0 µs +client +REQUEST_HEAD .* █\n/)
    assert.match(out, /\nexplained by: sluice why 101503\n/)
  }
  const unknown = await sluice(at, 'failures', '9-9')
  assert.deepEqual([unknown.code, unknown.err], [1, 'no kept exchange has the id 9-9; sluice failures lists them\n'])
})

test('failures: refuses options that it cannot read', async () => {
  for (const words of [
    ['--side', 'left'],
    ['--since', 'now'],
    ['--code', 'x'],
    ['--limit', '-1'],
    ['a', 'b'],
  ]) {
    assert.equal((await sluice(at, 'failures', ...words)).code, 2, words.join(' '))
  }
})

test('failures --follow: prints each exchange as it fails', async () => {
  const program = begin(at, 'failures', '--follow', '--json', '--code', '404')
  // The first question shows what failed since the start of the command.
  await eventually('two lines', () => {
    void get('/nothing/followed', 404).catch(() => {})
    return program.out.text.split('\n').length > 2
  })
  await program.kill()
  const rows = program.out.text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as { id: string; path: string })
  assert.ok(rows.every(({ path }) => path === '/nothing/followed'))
  assert.equal(new Set(rows.map(({ id }) => id)).size, rows.length)
})

test('failures --follow: ends without a stack trace when its reader leaves', async () => {
  const follow = `"${process.execPath}" "${LAUNCHER}" failures --follow --since 1h --home "${at.path}"`
  const command = `{ ${follow}; echo "code $?" >&2; } | head -c 10`
  // The command notices that its reader has left when it writes again.
  const more = setInterval(() => void get('/nothing/more', 404).catch(() => {}), 100)
  const ended = promisify(execFile)('sh', ['-c', command], { timeout: 120_000 })
  const { stdout, stderr } = await ended.finally(() => clearInterval(more))
  assert.equal(stdout.length, 10)
  assert.equal(stderr, 'code 0\n')
})

interface Archive {
  readonly log: {
    readonly entries: readonly {
      readonly time: number
      readonly timings: Readonly<Record<string, number>>
      readonly request: { readonly url: string; readonly queryString: readonly object[] }
    }[]
  }
}

test('failures --har: is valid by the published schema of HAR 1.2, whatever clients send', async () => {
  const { out } = await sluice(at, 'failures', '--har', '--limit', '1000')
  const archive: Archive = JSON.parse(out)
  const { schemas } = JSON.parse(readFileSync(new URL('../corpus/har-schema.json', import.meta.url), 'utf8')) as {
    readonly schemas: Readonly<Record<string, Record<string, unknown>>>
  }
  const formats = {
    uri: (text: string) => URL.canParse(text) && /^[!#$%&'()*+,\-./:;=?@[\]_~\w]*$/.test(text),
    'date-time': (text: string) => !Number.isNaN(Date.parse(text)),
  }
  const ajv = new Ajv({ strict: false, validateFormats: true, formats: { ...formats, ipv4: true, ipv6: true } })
  for (const { $schema: _, ...schema } of Object.values(schemas)) ajv.addSchema(schema)
  const isValid = ajv.validate('har.json#', archive)
  assert.ok(isValid, ajv.errorsText())
  const { entries } = archive.log
  assert.ok(entries.length >= 3)
  for (const { time, timings } of entries) {
    const sum = Object.values(timings).reduce((total, ms) => total + Math.max(0, ms), 0)
    assert.ok(Math.abs(sum - time) < 1e-6)
  }
  assert.equal(entries[0]!.request.url, 'http://gateway.example/dead/x?access_token=***&page=2')
  assert.deepEqual(entries[0]!.request.queryString, [
    { name: 'access_token', value: '***' },
    { name: 'page', value: '2' },
  ])
})

test('failures --follow: says how many it could not show', async () => {
  const program = begin(at, 'failures', '--follow')
  await eventually('a first line', () => {
    void get('/nothing/begun', 404).catch(() => {})
    return program.out.text.includes('/nothing/begun')
  })
  const client = await dial(gateway)
  const burst = 'GET /nothing/burst HTTP/1.1\r\nHost: gateway.example\r\n\r\n'.repeat(20)
  await eventually('the loss', () => {
    client.send(burst)
    return /^\d+ more failed, and are not shown: too many at once$/m.test(program.err.text)
  })
  client.destroy()
  await program.kill()
})
