/** Stores and profiles are files: a URL in the place of one is refused, and what it holds is not said. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Place } from './place.ts'

const URL_WITH_PASSWORD = 'https://user:planted@host.example/store.jks'
const STORE = `<KeyStore><Location>${URL_WITH_PASSWORD}</Location><Password>x</Password></KeyStore>`

for (const [what, keys] of [
  ['a key store', { 'listener.key_store.file_name': URL_WITH_PASSWORD }],
  ['a trust store', { 'sender.trust_store.file_name': URL_WITH_PASSWORD }],
  ['a file of profiles', { 'listener.ssl_profile.file_path': URL_WITH_PASSWORD }],
  ['a store of a profile', { 'listener.ssl_profile.file_path': 'profiles.xml' }],
] as const) {
  test(`${what} that is a URL`, async t => {
    const place = new Place(t)
    place.write('profiles.xml', `<parameter name="SSLProfiles"><profile>${STORE}</profile></parameter>`)
    const faults = await place.faults(keys)
    assert.ok(
      faults.some(fault => fault.includes('is a URL, and a file is expected')),
      faults.join('\n'),
    )
    assert.doesNotMatch(faults.join('\n'), /planted/)
  })
}
