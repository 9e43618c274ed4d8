/** `[message_builders]`, `[message_formatters]` and their custom rows: ES modules, checked before a node starts. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { examine } from '../../../src/config/load.ts'
import { DEFAULT_LIMITS } from '../../../src/mediation/formats/body-limits.ts'
import { formatSettings } from '../../../src/mediation/formats/format-settings.ts'
import { DEFAULT_CONVERSION } from '../../../src/mediation/formats/json-to-xml.ts'
import { moduleDiagnostics } from '../../../src/primary/operator-modules.ts'
import { temporaryHome } from '../../config/temporary-home.ts'

const TOML = `
[message_builders]
application_json = "modules/own.js"
text_plain = "org.apache.axis2.format.PlainTextBuilder"
[message_formatters]
soap_xml = "modules/none.js"
[[custom_message_builders]]
content_type = "Application/X-Own; v=1"
class = "../outside.js"
`

test('modules are named by media type; missing ones are errors, Java classes warnings', async t => {
  const home = temporaryHome(t, { 'deployment.toml': TOML, 'modules/own.js': 'export function build() {}' })
  const { configuration } = examine(home, [], join(home, 'data'))
  const settings = formatSettings(configuration)
  assert.deepEqual(settings.builders, {
    'application/json': 'modules/own.js',
    'text/plain': 'org.apache.axis2.format.PlainTextBuilder',
    'application/x-own': '../outside.js',
  })
  const { errors, warnings } = await moduleDiagnostics(configuration, home, {
    runsGateway: true,
    runsKeyManager: false,
  })
  assert.deepEqual(
    errors.map(({ key }) => key),
    ['custom_message_builders[0].class', 'message_formatters.soap_xml'],
  )
  assert.deepEqual(
    warnings.map(({ key, expected }) => [key, expected]),
    [
      [
        'message_builders.text_plain',
        'is a Java class, which cannot be loaded: the built-in builder or formatter of the type acts',
      ],
    ],
  )
})

test('the defaults of the keys are those of the code', t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  const { limits, conversion } = formatSettings(examine(home, [], join(home, 'data')).configuration)
  assert.deepEqual([limits, conversion], [DEFAULT_LIMITS, DEFAULT_CONVERSION])
})

test('a pattern of a switch that is no regular expression is an error', t => {
  const home = temporaryHome(t, { 'deployment.toml': '[mediation]\nsynapse.disable_auto_primitive_regex = "("' })
  const { errors } = examine(home, [], join(home, 'data'))
  assert.match(errors[0]!.expected, /must be a regular expression, in RE2 syntax/)
})
