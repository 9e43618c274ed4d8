/** Validates the keys of the registry without opening it: for `check`, a start and a reload. */
import type { Configuration } from '../../config/catalogue.ts'
import { ConfigurationErrors, Diagnostics } from '../../config/diagnostics.ts'
import { databaseSettings } from '../../database/database-settings.ts'
import { AccountRules } from './field-validation.ts'

export function validateRegistry(configuration: Configuration): Pick<Diagnostics, 'errors' | 'warnings'> {
  const diagnostics = new Diagnostics()
  collectErrors(diagnostics, () => {
    const { apim, warnings } = databaseSettings(configuration, '')
    diagnostics.warnings.push(...warnings)
    if (apim.server !== null && configuration.encryption.key === '') {
      diagnostics.error(
        '',
        'encryption.key',
        `must be set where database.apim_db is a server: it encrypts the signing keys that the nodes share there`,
        'generate one with `openssl rand -hex 32`, and name it on every node: key = "$file{/run/secrets/sluice-key}"',
      )
    }
  })
  collectErrors(diagnostics, () => new AccountRules(configuration['user_store.properties']))
  return diagnostics
}

function collectErrors(diagnostics: Diagnostics, validate: () => unknown): void {
  try {
    validate()
  } catch (error) {
    if (!(error instanceof ConfigurationErrors)) throw error
    diagnostics.errors.push(...error.errors)
  }
}
