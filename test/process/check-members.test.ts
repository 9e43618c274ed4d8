/** `check` and a start tell of members, APIs and issuers that nothing has. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { check } from '../../src/cli/check.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { loadHome } from '../../src/primary/home-loading.ts'
import { API_OF_BOTH_KINDS } from '../apis/api-text.ts'
import { argumentsFor, temporaryHome, Transcript } from '../config/temporary-home.ts'

const APPLICATION = `name: Shop
keys: [{consumerKey: k, issuer: "https://idp.example"}]
subscriptions:
  - {api: "A:1"}
  - {api: "B:1"}
`

test('check lists misspelt members with line and remedy, and fails', async t => {
  const home = temporaryHome(t, {
    'deployment.toml': '',
    'apis/A/api.yaml': `${API_OF_BOTH_KINDS}  securitySchema: [none]\n  operatons: []\n`,
  })
  const output = new Transcript()
  assert.notEqual(await check(argumentsFor(home), output), 0)
  assert.match(output.text, /api\.yaml:11: data\.securitySchema: is not known here \(did you mean securityScheme\?\)/)
  assert.match(output.text, /api\.yaml:12: data\.operatons: is not known here \(did you mean operations\?\)/)
  assert.match(output.text, /not valid: 2 errors/)
})

test('a home is loaded with a warning for each API and issuer that an application names and nobody has', async t => {
  const home = temporaryHome(t, {
    'deployment.toml': '',
    'apis/A/api.yaml': API_OF_BOTH_KINDS,
    'applications/shop.yaml': APPLICATION,
  })
  const { errors, warnings } = await loadHome(argumentsFor(home), new ApiProjects(home))
  assert.deepEqual(errors, [])
  assert.deepEqual(
    warnings.map(it => formatDiagnostic(it).replaceAll(`${home}/`, '')).filter(it => it.startsWith('applications/')),
    [
      'applications/shop.yaml:2: keys.issuer = "https://idp.example": is no issuer of this configuration (add it as [[apim.jwt.issuer]])',
      'applications/shop.yaml:5: subscriptions.api = "B:1": is no API of this home (did you mean A:1?)',
    ],
  )
})
