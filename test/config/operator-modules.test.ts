/** `check` finds modules of the operator that are missing. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { argumentsFor, temporaryHome, Transcript } from './temporary-home.ts'

const MODULE = 'export const nothing = null\n'

const OF_EVERY_NODE = [
  ['apim.jwt', 'generator_impl', 'enable = true'],
  ['apim.jwt', 'claims_extractor_impl', 'enable = true\nenable_user_claims = true'],
  ['apim.token.revocation', 'notifier_impl', ''],
] as const

const OF_KEY_MANAGERS = [
  ['oauth', 'extensions.token_generator', ''],
  ['oauth', 'oidc.extensions.id_token_builder', ''],
  ['oauth', 'oidc.extensions.claim_callback_handler', ''],
  ['oauth', 'oidc.extensions.user_info_claim_retriever', ''],
] as const

for (const [section, key, more] of [...OF_EVERY_NODE, ...OF_KEY_MANAGERS]) {
  test(`check requires that the module of ${section}.${key} exists inside the home folder`, async t => {
    const file = (path: string) => `[${section}]\n${more}\n${key} = "${path}"\n`
    const home = temporaryHome(t, { 'deployment.toml': file('gone.js'), 'there.js': MODULE })
    const missing = new Transcript()
    assert.equal(await check(argumentsFor(home), missing), 78)
    const line = file('gone.js').split('\n').length - 1
    assert.match(
      missing.text,
      new RegExp(`deployment\\.toml:${line}: ${section}\\.${key} = "gone\\.js": gone\\.js is not`),
    )
    const there = temporaryHome(t, { 'deployment.toml': file('there.js'), 'there.js': MODULE })
    assert.equal(await check(argumentsFor(there), new Transcript()), 0)
  })
}

test('check does not look for modules that the role of the node does not load', async t => {
  const worker = '[server]\nserver_role = "gateway-worker"\n[oauth]\nextensions.token_generator = "gone.js"\n'
  assert.equal(await check(argumentsFor(temporaryHome(t, { 'deployment.toml': worker })), new Transcript()), 0)
})
