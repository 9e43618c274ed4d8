/** `tune --apply`: keys in the text of deployment.toml, however operators write them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EditError, setInToml } from '../../src/cli/tune-edit.ts'

const SECTION = 'transport.passthru_http'
const KEY = 'http.max.connection.per.host.port'

/** Before, key, after. */
const EDITS: readonly (readonly [string, string, string])[] = [
  ['', 'reactors', `[${SECTION}]\nreactors = 4\n`],
  ['[server]\nx = 1\n', 'reactors', `[server]\nx = 1\n\n[${SECTION}]\nreactors = 4\n`],
  ['[server]\nx = 1', 'reactors', `[server]\nx = 1\n\n[${SECTION}]\nreactors = 4\n`],
  [
    `[${SECTION}]\nreactors = 2 # two\n[b]\nreactors = 9\n`,
    'reactors',
    `[${SECTION}]\nreactors = 4 # two\n[b]\nreactors = 9\n`,
  ],
  [`[${SECTION}] # first\nx = 1\n`, 'reactors', `[${SECTION}] # first\nreactors = 4\nx = 1\n`],
  [`[${SECTION}]\n"${KEY}" = 7\n`, KEY, `[${SECTION}]\n"${KEY}" = 4\n`],
  [`[${SECTION}]\n${KEY} = 7\n`, KEY, `[${SECTION}]\n${KEY} = 4\n`],
  [`[${SECTION}]\n'${KEY}' =7# seven\n`, KEY, `[${SECTION}]\n'${KEY}' =4# seven\n`],
  [`[${SECTION}]\n#reactors = 2\n`, 'reactors', `[${SECTION}]\nreactors = 4\n#reactors = 2\n`],
  [`[[${SECTION}.x]]\nreactors = 2\n`, 'reactors', `[[${SECTION}.x]]\nreactors = 2\n\n[${SECTION}]\nreactors = 4\n`],
  // Windows.
  [`# ours\r\n[${SECTION}]\r\nreactors = 2 # two\r\n`, 'reactors', `# ours\r\n[${SECTION}]\r\nreactors = 4 # two\r\n`],
  [`[${SECTION}]\r\nx = 1\r\n`, 'reactors', `[${SECTION}]\r\nreactors = 4\r\nx = 1\r\n`],
  ['[server]\r\nx = 1\r\n', 'reactors', `[server]\r\nx = 1\r\n\r\n[${SECTION}]\r\nreactors = 4\r\n`],
  // Other spellings of the same section.
  ['[ transport . "passthru_http" ]\nreactors = 0x2\n', 'reactors', '[ transport . "passthru_http" ]\nreactors = 4\n'],
  ['[transport]\npassthru_http.reactors = 2\n', 'reactors', '[transport]\npassthru_http.reactors = 4\n'],
  [
    '[transport]\npassthru_http = { reactors = 2, a = 1 } # x\n',
    'reactors',
    '[transport]\npassthru_http = { reactors = 4, a = 1 } # x\n',
  ],
  ['[transport]\npassthru_http.a = 2\n', 'reactors', '[transport]\npassthru_http.a = 2\npassthru_http.reactors = 4\n'],
  [`${SECTION}.a = 2\n[b]\n`, KEY, `${SECTION}.a = 2\n${SECTION}."${KEY}" = 4\n[b]\n`],
  // Text that looks like the key.
  [
    `[a]\nx = """\n[${SECTION}]\nreactors = 1\n"""\n[${SECTION}]\ny = [\n  ["reactors"],\n]\nreactors = 2\n`,
    'reactors',
    `[a]\nx = """\n[${SECTION}]\nreactors = 1\n"""\n[${SECTION}]\ny = [\n  ["reactors"],\n]\nreactors = 4\n`,
  ],
  [
    `[[r]]\na = 1\n[[r]]\na = 2\n[${SECTION}.x]\nb = 1\n`,
    'reactors',
    `[[r]]\na = 1\n[[r]]\na = 2\n[${SECTION}.x]\nb = 1\n\n[${SECTION}]\nreactors = 4\n`,
  ],
]
for (const [before, key, after] of EDITS) {
  test(`${key} is set in ${JSON.stringify(before)}`, () => {
    assert.equal(setInToml(before, { section: SECTION, key, value: 4 }), after)
  })
}

/** An inline table takes no further key from elsewhere. */
const REFUSED = ['[transport]\npassthru_http = { a = 1 }\n', `a = 1 = 2\n`]
for (const text of REFUSED) {
  test(`a text that no edit of one line changes correctly is left as it is: ${JSON.stringify(text)}`, () => {
    assert.throws(() => setInToml(text, { section: SECTION, key: 'reactors', value: 4 }), EditError)
  })
}
