/** The APIs `/token` and `/revoke`: the policies that limit them. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { tokenApis } from '../../src/plan/token-apis.ts'
import { loadConfiguration } from '../harness/configuration.ts'

const CONF = join(import.meta.dirname, '../../conf')

test('token_tier and revoke_tier name the policies of /token and /revoke; by default they have none', () => {
  const tiers = (...sets: readonly string[]) =>
    tokenApis(loadConfiguration(CONF, sets).configuration, []).map(({ access }) => access.tier)
  assert.deepEqual(tiers(), ['', ''])
  const sets = ['apim.throttling.token_tier="50KPerMin"', 'apim.throttling.revoke_tier="10KPerMin"']
  assert.deepEqual(tiers(...sets), ['50KPerMin', '10KPerMin'])
})
