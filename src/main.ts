/** Entry for `node src/main.ts COMMAND`. `launch.js` is the same and starts faster. */
import './launch.js'
