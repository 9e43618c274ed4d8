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

const OF_ALL = 'synapse-configs/default/sequences/WSO2AM--Ext--In.xml'
const ONE = '<endpoint><address uri="$uri"/></endpoint>'
/** [endpoint of a sequence of every API, what its warning says]. */
const WITHOUT_ADDRESS: readonly (readonly [string, RegExp])[] = [
  ['<endpoint key="far"/>', /endpoint key = "?far"?: there is no endpoint of this name/],
  ['<endpoint template="absent"/>', /endpoint key = "?absent"?: .*template/],
  ['<endpoint template="one"/>', /leaves out the parameter uri of the template one/],
]
for (const [endpoint, expected] of WITHOUT_ADDRESS) {
  test(`a home is loaded with a warning for ${endpoint} in a sequence of every API`, async t => {
    const namespace = 'xmlns="http://ws.apache.org/ns/synapse"'
    const home = temporaryHome(t, {
      'deployment.toml': '',
      'apis/A/api.yaml': API_OF_BOTH_KINDS,
      'synapse-configs/default/templates/one.xml': `<template ${namespace} name="one">${ONE}</template>`,
      [OF_ALL]: `<sequence ${namespace} name="WSO2AM--Ext--In"><call>${endpoint}</call></sequence>`,
    })
    const { errors, warnings } = await loadHome(argumentsFor(home), new ApiProjects(home))
    assert.deepEqual(errors, [])
    const told = warnings.map(it => formatDiagnostic(it).replaceAll(`${home}/`, '')).filter(it => it.startsWith(OF_ALL))
    assert.match(told.join('\n'), expected)
  })
}
