import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { explain } from '../../src/cli/explain.ts'
import { argumentsFor, Transcript, temporaryHome } from './temporary-home.ts'

async function run(
  home: string,
  rest: readonly string[],
  changes = {},
): Promise<{ code: number; out: string; err: string }> {
  const out = new Transcript()
  const err = new Transcript()
  const code = await explain(argumentsFor(home, { rest, ...changes }), out, err)
  return { code, out: out.text.replaceAll(join(home, 'deployment.toml'), 'F'), err: err.text }
}

const TOML = '[transport.passthru_http]\nheader.max_bytes = 8192\nworker_pool_size_core = 300\n'

test('one key: value, default, place, type, unit, range, meaning, rules', async t => {
  const home = temporaryHome(t, { 'deployment.toml': TOML })
  const { code, out, err } = await run(home, ['transport.passthru_http.header.max_bytes'])
  assert.equal(code, 0)
  assert.equal(err, '')
  assert.equal(
    out,
    `transport.passthru_http.header.max_bytes
  value     8192 bytes
  default   16384, or io_buffer_size where that is less
  set       F:2
  type      integer
  unit      bytes
  range     512 to 65536
  meaning   Longest head of a request, start line included; 431 beyond.
  acted on  yes
  rule      header.max_bytes must not exceed io_buffer_size: a head is buffered whole
  rule      target.max_bytes must not exceed header.max_bytes: the request target is part of the head
`,
  )
})

test('one key that is not acted on says why', async t => {
  const { out } = await run(temporaryHome(t, { 'deployment.toml': TOML }), ['passthru_http.worker_pool_size_core'])
  assert.match(out, /acted on {2}no: not built yet: the worker pool comes with mediation\n/)
  assert.match(out, /set {7}F:3\n/)
})

test('a value with a name is shown with it', async t => {
  const { out } = await run(temporaryHome(t, { 'deployment.toml': '' }), ['passthru_http.max_open_connections'])
  assert.match(out, /value {5}-1 \(unlimited\)\n/)
  assert.match(out, /set {7}nowhere, so the default holds\n/)
})

test('without a key: every section, and a star beside what was set', async t => {
  const home = temporaryHome(t, { 'deployment.toml': TOML })
  const { code, out } = await run(home, [], { sets: ['logging.level=debug'] })
  assert.equal(code, 0)
  assert.match(out, /^\[server\]\n/)
  assert.match(out, /\n\[transport\.passthru_http\]\n/)
  assert.match(out, /\n\* header\.max_bytes +8192 bytes +F:2\n/)
  assert.match(out, /\n\* worker_pool_size_core +300 messages +F:3 \(inert\)\n/)
  assert.match(out, /\n\* level +"debug" +--set\n/)
  assert.match(out, /\n {2}io_buffer_size +16384 bytes\n/)
  assert.equal(out.match(/^\* [a-z]/gm)?.length, 4)
})

test('a section by its name, a key by its end', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  assert.match((await run(home, ['logging'])).out, /^\[logging\]\n {2}level {2}"info"\n/)
  assert.match((await run(home, ['wait.sec'])).out, /^transport\.listener\.shutdown\.wait\.sec\n/)
  assert.match((await run(home, ['bind_address'])).out, /\[transport\.passthru_http\]\n[\s\S]*\[management\]\n/)
})

test('what is no key is answered with the nearest and exit code 2', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  assert.deepEqual(await run(home, ['ofset']), {
    code: 2,
    out: '',
    err: 'there is no key or section ofset; did you mean offset?\n',
  })
  assert.equal((await run(home, ['a', 'b'])).code, 2)
})

test('a faulty configuration is explained all the same, and answered with exit code 78', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '[server]\noffset = "x"' })
  const { code, out, err } = await run(home, ['server.offset'])
  assert.equal(code, 78)
  assert.match(out, /value {5}0, the default: what was set is faulty\n/)
  assert.match(out, /fault {5}F:2: server\.offset = "x": expected a whole number, 0 to 64535/)
  assert.match(err, /^fault {2}.*server\.offset = "x"/)
})

test('--json of one key and of all', async t => {
  const home = temporaryHome(t, { 'deployment.toml': TOML })
  const one = JSON.parse(
    (await run(home, ['header.max_bytes', ...[]], { json: true, rest: ['transport.passthru_http.header.max_bytes'] }))
      .out,
  )
  assert.deepEqual(one, {
    key: 'transport.passthru_http.header.max_bytes',
    value: 8192,
    default: 16384,
    where: 'F:2',
    faulty: false,
    required: false,
    type: 'integer',
    unit: 'bytes',
    range: '512 to 65536',
    meaning: 'Longest head of a request, start line included; 431 beyond.',
    inert: '',
    rules: [
      'header.max_bytes must not exceed io_buffer_size: a head is buffered whole',
      'target.max_bytes must not exceed header.max_bytes: the request target is part of the head',
    ],
  })
  const all = JSON.parse((await run(home, [], { json: true })).out)
  assert.equal(all[0].key, 'server.hostname')
})

test('colours only on a terminal, and there not with NO_COLOR', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  const coloured = new Transcript(true)
  const before = process.env.NO_COLOR
  delete process.env.NO_COLOR
  await explain(argumentsFor(home, { rest: ['offset'] }), coloured, coloured)
  process.env.NO_COLOR = '1'
  const plain = new Transcript(true)
  await explain(argumentsFor(home, { rest: ['offset'] }), plain, plain)
  if (before === undefined) delete process.env.NO_COLOR
  else process.env.NO_COLOR = before
  assert.ok(coloured.text.includes('\u001b['))
  assert.ok(!plain.text.includes('\u001b['))
  assert.ok(!(await run(home, ['offset'])).out.includes('\u001b['))
})
