/**
 * Keys that act only under a condition (issue 14, item 2): the catalogue names the condition, `explain` says whether it
 * holds, and `check` warns of a key that is set without effect.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { allKeys, type CatalogueKey, SECTIONS } from '../../src/config/catalogue.ts'
import {
  type Condition,
  conditionText,
  decidingKeys,
  either,
  holds,
  isNot,
  isNotSet,
  isOneOf,
  isSet,
  isTrue,
} from '../../src/config/conditions.ts'
import { FREE_NAME, keyPath } from '../../src/config/key.ts'
import { examine } from '../../src/config/load.ts'
import { referencePage } from '../../src/config/reference-page.ts'
import { schemaPage } from '../../src/config/reference-schema.ts'
import { tomlPage } from '../../src/config/reference-toml.ts'
import { run } from './explained.ts'
import { argumentsFor, Transcript, temporaryHome } from './temporary-home.ts'

const asWritten = (key: string): string => key

/** [condition, its words, values that it holds for, values that it does not hold for] */
const CONDITIONS: readonly (readonly [Condition, string, readonly unknown[], readonly unknown[]])[] = [
  [isTrue('a'), 'a is true', [true], [false, 'true']],
  [isOneOf('a', 'x', 'y', 'z'), 'a is x, y or z', ['x', 'z'], ['', 'xy']],
  [isNot('a', 0), 'a is not 0', [1], [0]],
  [isSet('a'), 'a is set', ['x', ['x']], ['', []]],
  [isNotSet('a'), 'a is not set', [''], ['x']],
  [either(isTrue('a'), isOneOf('a', 5)), 'a is true or a is 5', [true, 5], [false, 4]],
]

for (const [condition, text, values, others] of CONDITIONS) {
  test(`the condition "${text}" holds for ${JSON.stringify(values)} alone`, () => {
    assert.equal(conditionText(condition, asWritten), text)
    for (const value of values) assert.ok(holds(condition, () => value))
    for (const value of others) assert.ok(!holds(condition, () => value))
  })
}

const CONDITIONAL = allKeys().filter(({ definition: { requirements, inertReason } }) => {
  return requirements.length > 0 && inertReason === ''
})

function deciding({ section }: CatalogueKey, key: string): CatalogueKey | undefined {
  const path = key.startsWith('.') ? section + key : key
  return allKeys().find(other => other.path === path)
}

test('every condition is about keys of the catalogue, and about values that they can have', () => {
  assert.ok(CONDITIONAL.length > 50)
  const check = (key: CatalogueKey, condition: Condition): void => {
    if ('any' in condition) for (const each of condition.any) check(key, each)
    else {
      const about = deciding(key, condition.key)
      assert.ok(about, `${key.path}: ${condition.key}`)
      assert.equal(about.definition.inertReason, '', `${key.path}: ${condition.key}`)
      for (const value of condition.values) {
        assert.ok(
          value === '' || about.definition.read(value) !== undefined,
          `${key.path}: ${condition.key} = ${value}`,
        )
      }
    }
  }
  for (const key of CONDITIONAL) for (const { condition } of key.definition.requirements) check(key, condition)
})

// ---- every conditional key ------------------------------------------------------------------------------------------

const SAMPLES = [
  ...[true, false, 7, 5000, 'x', ['x'], 'h.example', 'https://h.example', 'ws://h.example', 'http://h.example'],
  ...['jdbc:mysql://h.example/n', '10.0.0.0/8', ['10.0.0.0/8'], 'X-Field', ['X-Field'], 'PEM', 'x'.repeat(40)],
  33_554_432,
  ...['ssl://0.0.0.0:9711', ['amqps://h.example:5671']],
  ...[
    'base64url',
    'combined',
    'openid',
    'NONE',
    'require',
    'traffic-manager',
    'h2',
    'default',
    'gateway-worker',
    'stdout',
    'off',
  ],
]

/** Another value than the default where there is one, because a default asks for nothing new. */
function sample({ definition }: CatalogueKey, excluded: readonly unknown[] = []): unknown {
  const { read, defaultValue } = definition
  const fits = (value: unknown): boolean => read(value) !== undefined && !excluded.includes(read(value))
  if (defaultValue === false && fits(true)) return true
  return SAMPLES.find(value => fits(value) && read(value) !== defaultValue) ?? SAMPLES.find(fits)
}

type Settings = Map<string, unknown>

/** Adds settings under which a condition holds, or does not hold. */
function decide(key: CatalogueKey, condition: Condition, isWanted: boolean, settings: Settings): void {
  if ('any' in condition) {
    const relevant = isWanted ? condition.any.slice(0, 1) : condition.any
    for (const each of relevant) decide(key, each, isWanted, settings)
    return
  }
  const about = deciding(key, condition.key)!
  const takesOne = isWanted !== condition.negated
  const value = takesOne ? condition.values[0] : sample(about, condition.values)
  settings.set(about.path, value === '' && Array.isArray(about.definition.defaultValue) ? [] : value)
}

function toml(settings: Settings): string {
  return [...settings].map(([path, value]) => `--set ${path}=${JSON.stringify(value)}`).join(' ')
}

/** What a start says of the key without effect. */
function saidOf(t: TestContext, { path }: CatalogueKey, settings: Settings): readonly string[] {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  const sets = [...settings].map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  const { warnings } = examine(home, sets, join(home, 'data'))
  const isAbout = ({ key }: { readonly key: string }): boolean =>
    key === path || key.split(/: |, /).some((name, at, names) => at > 0 && `${names[0]}.${name}` === path)
  return warnings
    .filter(warning => isAbout(warning) && /no effect unless/.test(warning.expected))
    .map(each => each.expected)
}

test('setting a key whose condition does not hold gives one warning, with the condition', t => {
  for (const key of CONDITIONAL) {
    const { path, definition } = key
    const section = SECTIONS.find(({ name }) => name === key.section)!
    if (section.repeated || path.includes(FREE_NAME)) continue
    for (const [index, { condition }] of definition.requirements.entries()) {
      const settings: Settings = new Map([[path, typeof definition.defaultValue === 'boolean' ? true : sample(key)]])
      for (const [other, { condition: also }] of definition.requirements.entries()) {
        if (other !== index) decide(key, also, true, settings)
      }
      decide(key, condition, false, settings)
      const said = saidOf(t, key, settings)
      const text = conditionText(condition, name => (name.startsWith('.') ? key.section + name : name))
      assert.deepEqual(said.length, 1, `${path}: ${toml(settings)}`)
      assert.match(said[0]!, /^(has|have) no effect unless /)
      assert.ok(said[0]!.endsWith(text) || /server_role/.test(said[0]!), `${said[0]} / ${text}`)
    }
  }
})

test('a key whose conditions hold is set without a warning', t => {
  for (const key of CONDITIONAL) {
    const { path, definition } = key
    const section = SECTIONS.find(({ name }) => name === key.section)!
    if (section.repeated || path.includes(FREE_NAME)) continue
    const settings: Settings = new Map([[path, sample(key)]])
    for (const { condition } of definition.requirements) decide(key, condition, true, settings)
    assert.deepEqual(saidOf(t, key, settings), [], `${path}: ${toml(settings)}`)
  }
})

// ---- the keys of the issue ------------------------------------------------------------------------------------------

const EMBEDDED = 'database.apim_db.type is mysql or postgre'
const EITHER = `${EMBEDDED} or database.shared_db.type is mysql or postgre`

const BROKER = 'apim.throttling.throttle_decision_endpoints=["amqp://127.0.0.1"]'

/** [key, its setting, the condition, settings under which it acts] */
const OF_THE_ISSUE: readonly (readonly [path: string, value: string, condition: string, acting: string])[] = [
  ['database.apim_db.url', '"jdbc:h2:./x"', EMBEDDED, ''],
  ['database.apim_db.username', '"u"', EMBEDDED, 'database.apim_db.type=mysql'],
  ['database.apim_db.password', '"p"', EMBEDDED, 'database.apim_db.type=postgre'],
  ['database.apim_db.validationQuery', '"SELECT 2"', EITHER, 'database.shared_db.type=mysql'],
  ['database.apim_db.pool_options.maxActive', '7', EITHER, 'database.apim_db.type=mysql'],
  ['database.apim_db.pool_options.testOnBorrow', 'true', EITHER, 'database.apim_db.type=mysql'],
  ['database.apim_db.pool_options.validationInterval', '7', EITHER, 'database.apim_db.type=mysql'],
  ['database.shared_db.url', '"jdbc:h2:./x"', 'database.shared_db.type is mysql or postgre', ''],
  [
    'database.shared_db.username',
    '"u"',
    'database.shared_db.type is mysql or postgre',
    'database.shared_db.type=mysql',
  ],
  [
    'database.shared_db.password',
    '"p"',
    'database.shared_db.type is mysql or postgre',
    'database.shared_db.type=mysql',
  ],
  [
    'apim.key_manager.service_url',
    '"https://h.example/services/"',
    'server.server_role is gateway-worker',
    'server.server_role=gateway-worker',
  ],
  ['apim.key_manager.username', '"u"', 'server.server_role is gateway-worker', 'server.server_role=gateway-worker'],
  ['apim.key_manager.password', '"p"', 'server.server_role is gateway-worker', 'server.server_role=gateway-worker'],
  ['apim.throttling.jms.username', '"u"', 'apim.throttling.throttle_decision_endpoints is set', BROKER],
  ['apim.throttling.jms.destination', '"t"', 'apim.throttling.throttle_decision_endpoints is set', BROKER],
  ['apim.throttling.enable_decision_connection', 'false', 'apim.throttling.throttle_decision_endpoints is set', BROKER],
  [
    'apim.token.revocation.enable_persistent_notifier',
    'false',
    'server.server_role is gateway-worker',
    'server.server_role=gateway-worker',
  ],
]

for (const [path, value, condition, acting] of OF_THE_ISSUE) {
  test(`${path} says under which condition it acts`, async t => {
    const [section, key] = [sectionOf(path), path.slice(sectionOf(path).length + 1)]
    const home = temporaryHome(t, { 'deployment.toml': `[${section}]\n${key} = ${value}\n` })
    const output = new Transcript()
    assert.equal(await check(argumentsFor(home), output), 0, output.text)
    const line = output.text.split('\n').find(each => each.includes(`${path}: has no effect unless ${condition} (`))
    assert.match(line ?? output.text, /^warning {2}.*deployment\.toml:2: /)
    const { out } = await run(home, [path])
    assert.ok(out.includes(`  acted on    when ${condition}`), out)
    assert.match(out, /acted on .* \(not now: .* is (?:"(h2|default)"|\[\]) \(default\)/)
    const { actsWhen } = JSON.parse((await run(home, [path], { json: true })).out)
    assert.ok(actsWhen.some((each: { holds: boolean }) => each.holds === false))
    if (acting !== '') assert.match((await run(home, [path], { sets: [acting] })).out, /acted on .* \(now: /)
  })
}

function sectionOf(path: string): string {
  return SECTIONS.map(({ name }) => name)
    .filter(name => name !== '' && path.startsWith(`${name}.`))
    .reduce((one, other) => (other.length > one.length ? other : one))
}

test('the list of explain marks keys that have no effect now', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '[database.apim_db]\nusername = "u"\n' })
  assert.match((await run(home, ['database.apim_db'])).out, /\n\* username +"u" +F:2 \(no effect\)\n/)
})

test('a key of a section that the role of the node does not read is reported', t => {
  const file = '[server]\nserver_role = "gateway-worker"\n[oauth]\nrate_limit.per_client = 5\n'
  const home = temporaryHome(t, { 'deployment.toml': file })
  const { warnings } = examine(home, [], join(home, 'data'))
  assert.deepEqual(
    warnings.map(({ where, key, expected, hint }) => [where.replace(/.*:/, ''), key, expected, hint.replace(home, '')]),
    [
      [
        '4',
        'oauth.rate_limit.per_client',
        'has no effect unless server.server_role is default, control-plane or api-key-manager',
        'server.server_role is "gateway-worker" (/deployment.toml:2)',
      ],
    ],
  )
})

test('a section that only parts read which are not built has no effect on a node of their role', t => {
  const file = '[server]\nserver_role = "api-publisher"\n[apim.workflow]\nenable = true\n'
  const home = temporaryHome(t, { 'deployment.toml': file })
  assert.deepEqual(
    examine(home, [], join(home, 'data')).warnings.map(({ key, expected }) => `${key}: ${expected}`),
    ['apim.workflow.enable: has no effect unless server.server_role is default, control-plane or api-key-manager'],
  )
})

test('many keys without effect for one reason are one warning', t => {
  const cors = '[apim.cors]\nenable = false\nallow_origins = "https://a.example"\nmax_age = 5\nallow_methods = "GET"\n'
  const home = temporaryHome(t, { 'deployment.toml': cors })
  const { warnings } = examine(home, [], join(home, 'data'))
  assert.deepEqual(
    warnings.map(({ key, expected }) => `${key}: ${expected}`),
    ['apim.cors: allow_origins, allow_methods, max_age: have no effect unless apim.cors.enable is true'],
  )
})

test('a flag that is off beside the flag that switches its part off asks for nothing', t => {
  const toml = '[oauth.token_cleanup]\nretain_access_tokens_for_auditing = false\nenable = false'
  const home = temporaryHome(t, { 'deployment.toml': toml })
  assert.deepEqual(examine(home, [], join(home, 'data')).warnings, [])
})

test('a name that the operator chooses is in the condition of its keys', () => {
  const free = CONDITIONAL.filter(({ key }) => key.includes(FREE_NAME))
  for (const { section, definition } of free) {
    for (const { condition } of definition.requirements) {
      for (const key of decidingKeys(condition))
        assert.ok(allKeys().some(({ path }) => path === (key.startsWith('.') ? keyPath(section, key.slice(1)) : key)))
    }
  }
})

test('reference, schema and sample file name the conditions', () => {
  const words = 'Acts when .type. is mysql or postgre'
  assert.match(referencePage(), new RegExp(`\\| \`username\` .*\\*${words}\\.\\*`))
  assert.match(
    schemaPage(),
    /Account at the database; there is no default account\. .* Acts when type is mysql or postgre\./,
  )
  assert.match(tomlPage(), /#username = "".*Acts when type is mysql or postgre\./)
})
