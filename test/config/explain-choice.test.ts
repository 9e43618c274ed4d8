/** Selection of keys by `explain`, and keys of rows and names that do not exist yet. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SECTIONS } from '../../src/config/catalogue.ts'
import { run } from './explained.ts'
import { temporaryHome } from './temporary-home.ts'

const TWO_ROWS = '[[apim.jwt.issuer]]\nname = "a"\n[[apim.jwt.issuer]]\nname = "b"\n'

const NO_ROW = /^apim\.jwt\.issuer\.name\n {2}value {7}none: there is no \[\[apim\.jwt\.issuer\]\]\n/

const ASKED: readonly (readonly [toml: string, wanted: string, said: RegExp])[] = [
  [TWO_ROWS, 'apim.jwt.issuer.name', /^apim\.jwt\.issuer\[0\]\.name\n[\s\S]*\napim\.jwt\.issuer\[1\]\.name\n/],
  [TWO_ROWS, 'apim.jwt.issuer[1].name', /^apim\.jwt\.issuer\[1\]\.name\n {2}value {7}"b"\n/],
  ['', 'apim.jwt.issuer[0].name', NO_ROW],
  ['', 'custom_keystore.mine.alias', /^custom_keystore\.<name>\.alias\n {2}value {7}none: no name is chosen/],
  ['', 'transport.passthru_http."http.socket.timeout"', /^transport\.passthru_http\.http\.socket\.timeout\n/],
]

for (const [toml, wanted, said] of ASKED) {
  const file = toml === '' ? 'an empty file' : 'a file with rows'
  test(`explain finds a key as the file or the reference page spells it: ${wanted} of ${file}`, async t => {
    const { code, out } = await run(temporaryHome(t, { 'deployment.toml': toml }), [wanted])
    assert.equal(code, 0)
    assert.match(out, said)
  })
}

test('a table without rows is explained by its keys with their defaults', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  for (const wanted of ['apim.jwt.issuer', '[[apim.jwt.issuer]]', '[apim.jwt.issuer]']) {
    const { code, out, err } = await run(home, [wanted])
    assert.deepEqual([code, err], [0, ''], wanted)
    const [title, ...lines] = out.split('\n')
    assert.match(title!, /^\[\[apim\.jwt\.issuer\]\] .*there is no \[\[apim\.jwt\.issuer\]\]: the values are defaults$/)
    const keys = Object.keys(SECTIONS.find(({ name }) => name === 'apim.jwt.issuer')!.keys)
    assert.deepEqual(
      lines.slice(0, keys.length).map(line => line.trim().split(' ')[0]),
      keys,
    )
    assert.equal(lines[keys.length], '')
    assert.ok(
      lines.some(line => /^ {2}name +"" +required$/.test(line)),
      out,
    )
    assert.doesNotMatch(lines.join(), /there is no/)
  }
  const facts = JSON.parse((await run(home, ['apim.jwt.issuer'], { json: true })).out)
  assert.deepEqual(
    facts.map(({ key, value }: { key: string; value: unknown }) => [key.split('.').slice(0, 3).join('.'), value]),
    facts.map(() => ['apim.jwt.issuer', null]),
  )
  assert.ok(facts.length > 1)
  assert.match((await run(home, ['apim.jwt.issuer'], {}, { changed: true, burst: '' })).out, /^nothing differs/)
})

test('a section without a chosen name is explained by its keys with their defaults', async t => {
  const { code, out } = await run(temporaryHome(t, { 'deployment.toml': '' }), ['custom_keystore'])
  assert.equal(code, 0)
  assert.match(out, /^\[custom_keystore\] .*no name is chosen for <name>: the values are defaults\n/)
  assert.match(out, /\n {2}<name>\.alias +""\n/)
})

test('explain finds a section by name and a key by the end of its path', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  assert.match((await run(home, ['logging'])).out, /^\[logging\]\n {2}level {2}"info"\n/)
  assert.match((await run(home, ['wait.sec'])).out, /^transport\.listener\.shutdown\.wait\.sec\n/)
  assert.match((await run(home, ['bind_address'])).out, /\[transport\.passthru_http\]\n[\s\S]*\[management\]\n/)
})

test('keys of tables without rows are listed as such', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  assert.match(
    (await run(home, ['proxy_passw'])).out,
    /^\[\[transport\.http\.proxy_profile\]\] {2}there is no \[\[transport\.http\.proxy_profile\]\]: .*\n {2}proxy_password {2}\(not set\)\n/,
  )
  const json = JSON.parse((await run(home, ['proxy_password'], { json: true })).out)
  assert.deepEqual(
    json.map(({ value }: { value: unknown }) => value),
    [null, null],
  )
})

test('all keys of the same name are explained in full', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  const { out } = await run(home, ['io_buffer_size'])
  assert.deepEqual(out.match(/^\S.*$/gm), [
    'transport.passthru_http.io_buffer_size',
    'transport.passthru_https.io_buffer_size',
  ])
  assert.equal(out.match(/^ {2}meaning /gm)!.length, 2)
})

test('explain finds keys by any part of a path and by an alias', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  const { out } = await run(home, ['Cache'])
  assert.match(out, /\[apim\.cache\.gateway_token\]/)
  assert.doesNotMatch(out, /\[logging\]/)
  assert.match((await run(home, ['white_listed_scopes'])).out, /^apim\.oauth_config\.allowed_scopes\n/)
})
