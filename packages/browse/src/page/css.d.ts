/** Style sheets, which the bundler puts into app.css. */
declare module '*.css';
