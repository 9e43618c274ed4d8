/** What `start --sample` asks of the key manager for the line that it prints. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sampleToken } from '../../src/cli/sample-token.ts'

/** What was asked of a key manager that has these; it has what was made, too. */
async function askedOf(has: { application: boolean; keys: boolean; subscribed: boolean }): Promise<readonly string[]> {
  const asked: string[] = []
  const token = await sampleToken(({ action }) => {
    asked.push(action)
    const answers: Readonly<Record<string, object>> = {
      'application list': { applications: [{ name: 'Other' }, ...(has.application ? [{ name: 'Sample' }] : [])] },
      'application show': {
        keys: [{ keyType: 'SANDBOX' }, ...(has.keys ? [{ keyType: 'PRODUCTION' }] : [])],
        subscriptions: has.subscribed ? [{ api: 'Sample:1.0.0' }] : [],
      },
      token: { accessToken: 'a.b.c' },
    }
    return Promise.resolve(answers[action] ?? {})
  })
  assert.equal(token, 'a.b.c')
  return asked
}

test('the first start makes application, subscription and keys; the next one asks for a token alone', async () => {
  assert.deepEqual(await askedOf({ application: false, keys: false, subscribed: false }), [
    'application list',
    'application create',
    'application show',
    'subscription add',
    'key generate',
    'token',
  ])
  const again = await askedOf({ application: true, keys: true, subscribed: true })
  assert.deepEqual(again, ['application list', 'application show', 'token'])
})
