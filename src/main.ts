/** The command line from its TypeScript side: `node src/main.ts`. `launch.js` does the same and starts faster. */
import './launch.js'
